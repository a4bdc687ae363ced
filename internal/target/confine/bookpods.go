package confine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/target/paging"
)

// bookLearned is how long a pod that others have read stays known without another read.
const bookLearned = time.Minute

// Learn takes over pods of the namespace that the API server has shown since some time, so that
// they need no list of all pods.
func (b *Book) Learn(since time.Time, pods []corev1.Pod) {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		return p.Namespace != b.namespace
	})
	found := unlabelled(residentsOf(pods, since))
	b.mu.Lock()
	defer b.mu.Unlock()
	known := make(map[string]*resident, len(b.learned.residents))
	for _, r := range b.learned.residents {
		known[r.name] = r
	}
	changed := len(found) < len(pods) // some have ended, or have no address
	for i, r := range found {
		if old := known[r.name]; old != nil && old.same(r) {
			if since.After(old.seen) {
				old.seen, old.gone = since, false
			}
			found[i] = old
			continue
		}
		changed = true
	}
	if !changed {
		return
	}
	for i := range pods {
		delete(known, pods[i].Name)
	}
	for _, r := range known {
		if !r.gone && time.Since(r.seen) < bookLearned {
			found = append(found, r)
		}
	}
	b.learned = newDirectory(found)
}

// known is where a pod that is known is dialled.
func (b *Book) known(ctx context.Context, w *wanted) (place, bool) {
	for _, look := range []func() *directory{b.recent, b.again} {
		if found := w.in(look()); len(found) > 0 {
			return found[0], true
		}
	}
	b.mu.Lock()
	learned := b.learned
	b.mu.Unlock()
	all, _, _ := b.all.known()
	return b.first(ctx, append(w.in(learned), w.in(all)...))
}

// listed is known after a list of all pods of the namespace.
func (b *Book) listed(ctx context.Context, w *wanted) ([]string, error) {
	pods, err := b.all.latest(ctx)
	if p, ok := b.first(ctx, w.in(pods)); ok {
		return []string{p.address}, nil
	}
	return nil, b.unlisted("pods", err)
}

// first is the first place whose pod still has the address.
func (b *Book) first(ctx context.Context, found []place) (place, bool) {
	for _, p := range found {
		if b.confirm(ctx, p.of) {
			return p, true
		}
	}
	return place{}, false
}

// confirm reports whether a pod that is not watched still has its addresses: it is read again after
// a moment. Where the API server does not answer, what it has shown remains.
func (b *Book) confirm(ctx context.Context, r *resident) bool {
	if stands, sure := b.verdict(r); sure {
		return stands
	}
	detached := context.WithoutCancel(ctx)
	done := b.checks.DoChan(fmt.Sprintf("%p", r), func() (any, error) {
		b.check(detached, r)
		return nil, nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	stands, _ := b.verdict(r)
	return stands
}

// verdict is what is known of a pod, and whether that is recent enough.
func (b *Book) verdict(r *resident) (stands, sure bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !r.gone, r.gone || time.Since(r.seen) < bookFresh || time.Now().Before(b.silent)
}

// check reads one pod.
func (b *Book) check(ctx context.Context, r *resident) {
	ctx, cancel := context.WithTimeout(ctx, PodTimeout)
	defer cancel()
	began := time.Now()
	pod := corev1.Pod{}
	err := b.live.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: r.name}, &pod)
	var now []*resident
	if err == nil {
		now = residentsOf([]corev1.Pod{pod}, began)
		b.Learn(began, []corev1.Pod{pod}) // another pod of the name, or another address
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		b.silent = time.Now().Add(bookLive)
	case len(now) == 1 && now[0].same(r):
		r.seen = began
	default:
		r.seen, r.gone = began, true
	}
}

// behind are the pods of a Service, ready ones first. One without a selector leads to wherever
// somebody has written.
func (b *Book) behind(ctx context.Context, s *service, port corev1.ServicePort) ([]string, error) {
	if len(s.selector) == 0 {
		return nil, nil
	}
	for _, look := range []func() *directory{b.recent, b.again} {
		if found := look().behind(s, port); len(found) > 0 {
			return addressesOf(found), nil
		}
	}
	pods, err := b.selectedBy(s.selector).latest(ctx)
	found := slices.DeleteFunc(pods.behind(s, port), func(p place) bool {
		return !b.confirm(ctx,
			p.of)
	})
	if len(found) == 0 {
		return nil, b.unlisted("pods", err)
	}
	return addressesOf(found), nil
}

func addressesOf(found []place) []string {
	all := make([]string, len(found))
	for i, p := range found {
		all[i] = p.address
	}
	return all
}

// selectedBy lists the pods that a selector selects.
func (b *Book) selectedBy(selector map[string]string) *reading[*directory] {
	key := labels.SelectorFromSet(selector).String()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.selected[key] == nil {
		b.selected[key] = &reading[*directory]{
			rest:  bookLive,
			value: &directory{},
			list: func(ctx context.Context) (*directory, error) {
				var found []*resident
				err := b.eachPage(ctx, func(pods []corev1.Pod, since time.Time) {
					found = append(found, residentsOf(pods, since)...)
					b.Learn(since, pods)
				}, client.MatchingLabels(selector))
				return newDirectory(found), err
			},
		}
	}
	return b.selected[key]
}

// listPods lists all pods of the namespace, and keeps only what is needed to find them by an
// address.
func (b *Book) listPods(ctx context.Context) (*directory, error) {
	var all []*resident
	err := b.eachPage(ctx, func(pods []corev1.Pod, since time.Time) {
		all = append(all,
			unlabelled(residentsOf(pods, since))...)
	})
	return newDirectory(all), err
}

func (b *Book) eachPage(
	ctx context.Context, each func(pods []corev1.Pod, since time.Time), options ...client.ListOption,
) error {
	since := time.Now() // all pages show this instant
	var page corev1.PodList
	return paging.Each(ctx, b.live, &page, func() bool {
		each(page.Items, since)
		page.Items = nil // the next page must not be decoded over these
		return true
	}, append(options, client.InNamespace(b.namespace))...)
}

// unlisted is the error of a list, if any, for whoever sends something.
func (b *Book) unlisted(what string, err error) error {
	if err == nil {
		return nil
	}
	return &Unlisted{
		what:      what,
		namespace: b.namespace,
		cause:     err,
	}
}
