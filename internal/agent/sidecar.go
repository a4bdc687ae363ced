package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Times of requests to a sidecar.
const (
	sidecarTimeout = 2 * time.Second        // of one request
	sidecarEvery   = 250 * time.Millisecond // between two requests
)

// Sidecar is a container beside the agent through which its connections go, such as the proxy of a
// service mesh.
type Sidecar struct {
	// answers with a status of 2xx once the network works; "" = it works from the start
	ReadyURL string
	QuitURL  string // ends the sidecar by POST; "" = it ends by itself
}

// await returns once the sidecar is ready, or with the error of ctx. say reports why it waits.
func (s Sidecar) await(ctx context.Context, say func(string)) error {
	if s.ReadyURL == "" {
		return nil
	}
	every := time.NewTicker(sidecarEvery)
	defer every.Stop()
	for {
		err := ask(ctx, http.MethodGet, s.ReadyURL)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		say(fmt.Sprintf("waits for the sidecar: %v", err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}

// Quit ends the sidecar: without that, the pod of a Job stays although its load has ended. ctx may
// be over.
func (s Sidecar) Quit(ctx context.Context, logger *slog.Logger) {
	if s.QuitURL == "" {
		return
	}
	if err := ask(context.WithoutCancel(ctx), http.MethodPost, s.QuitURL); err != nil {
		logger.Error("failed to end the sidecar: the pod stays until its deadline", "error", err.Error())
		return
	}
	logger.Info("ended the sidecar")
}

func ask(ctx context.Context, method, url string) error {
	ctx, cancel := context.WithTimeout(ctx, sidecarTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return err
	}
	// A connection of its own: the sidecar ends.
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		// only the pod itself is asked
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %q: %s", method, url, response.Status)
	}
	return nil
}
