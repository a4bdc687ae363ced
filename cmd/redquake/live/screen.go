package live

import (
	"fmt"
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
)

// Screen shows states, one after the other.
type Screen interface {
	Show(s *State)
	// Close ends it. What is written afterwards stands below what it has shown, or where that was. The
	// error says why nothing could be shown.
	Close() error
}

// IsTerminal reports whether a stream is a terminal on which a page can be shown.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// NewScreen returns a page if out is a terminal, else lines of text. interrupt is called for each
// Ctrl-C that a terminal delivers as a key, and leave for each q.
func NewScreen(in io.Reader, out io.Writer, plain bool, interrupt, leave func()) Screen {
	if plain || !IsTerminal(out) {
		return &lines{out: out, plain: NewPlain()}
	}
	if !IsTerminal(in) {
		in = nil // no keys; Ctrl-C is a signal then
	}
	program := tea.NewProgram(page{interrupt: interrupt, leave: leave}, tea.WithInput(in),
		tea.WithOutput(out), tea.WithoutSignalHandler())
	t := &terminal{program: program, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		_, t.err = program.Run()
	}()
	return t
}

type lines struct {
	out   io.Writer
	plain *Plain
}

func (l *lines) Show(s *State) {
	for _, line := range l.plain.Next(s) {
		fmt.Fprintln(l.out, line)
	}
}

func (l *lines) Close() error {
	return nil
}

type terminal struct {
	program *tea.Program
	done    chan struct{}
	err     error
}

func (t *terminal) Show(s *State) {
	t.program.Send(s)
}

func (t *terminal) Close() error {
	t.program.Quit()
	<-t.done
	return t.err
}

// page is the model of the terminal's program.
type page struct {
	state            *State
	width, height    int
	interrupt, leave func()
}

func (p page) Init() tea.Cmd {
	return nil
}

func (p page) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case *State:
		p.state = msg
	case tea.WindowSizeMsg:
		p.width, p.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "ctrl+c":
			p.interrupt()
		case "q", "esc":
			p.leave()
		case "ctrl+z":
			return p, tea.Suspend
		}
	}
	return p, nil
}

func (p page) View() tea.View {
	var v tea.View
	if p.state != nil && p.width > 0 {
		v = tea.NewView(Page(p.state, p.width, p.height))
	}
	v.AltScreen = true
	return v
}
