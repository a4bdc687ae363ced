package study

import (
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/report/wording"
)

// Matrix is the cells, and what they differ in.
type Matrix struct {
	Parameters []string        // none: the cells are the arguments of a command
	Fixed      map[string]bool // parameters whose value the baseline fixes
	Cells      []Cell          // in the order of the matrix
}

// CellNamed is the position of a cell; -1 = there is none.
func (m *Matrix) CellNamed(name string) int {
	return slices.IndexFunc(m.Cells, func(c Cell) bool { return c.Name == name })
}

// Values are those of a parameter, in the order of the matrix.
func (m *Matrix) Values(p int) (values []string) {
	for i := range m.Cells {
		if v := m.Cells[i].Values[p]; !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// FixedNames are the parameters that the baseline fixes.
func (m *Matrix) FixedNames() string {
	var names []string
	for _, name := range m.Parameters {
		if m.Fixed[name] {
			names = append(names, name)
		}
	}
	return strings.Join(names, " · ")
}

// Named is a group with its parameter, such as appendfsync always.
func (m *Matrix) Named(group string) string {
	name := m.FixedNames()
	if name != "" && !strings.Contains(name, " · ") {
		return name + " " + group
	}
	return group
}

// GroupOf is the values of a cell that its baseline does not have: what the comparison is about;
// and matched those that both have.
func (m *Matrix) GroupOf(cell int) (group, matched string) {
	c := &m.Cells[cell]
	if len(m.Parameters) == 0 {
		return c.Name, ""
	}
	var of, rest []string
	for i, name := range m.Parameters {
		switch {
		case m.Fixed[name]:
			of = append(of, wording.Numbered(c.Values[i]))
		default:
			rest = append(rest, ColumnHead(name, c.Values[i]))
		}
	}
	return strings.Join(of, " · "), strings.Join(rest, " · ")
}

// ByGroup is the cells with the same matched values together.
func (m *Matrix) ByGroup() []int {
	var order []int
	first := map[string]int{}
	matched := make([]string, len(m.Cells))
	for i := range m.Cells {
		_, matched[i] = m.GroupOf(i)
		if _, ok := first[matched[i]]; !ok {
			first[matched[i]] = i
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return first[matched[a]] - first[matched[b]] })
	return order
}

// IsBaseline reports whether others are compared with a cell.
func (m *Matrix) IsBaseline(cell int) bool {
	return m.Cells[cell].Baseline == cell &&
		slices.ContainsFunc(m.Cells, func(c Cell) bool {
			return c.Baseline == cell &&
				c.Name != m.Cells[cell].Name
		})
}

// BaselineText is what the cells are compared with.
func (m *Matrix) BaselineText() string {
	for i := range m.Cells {
		if b := m.Cells[i].Baseline; b != i {
			group, matched := m.GroupOf(b)
			if matched == "" {
				return m.Named(group)
			}
			return m.Named(group) + " of the same " + m.matchedNames()
		}
	}
	return ""
}

func (m *Matrix) matchedNames() string {
	var names []string
	for _, name := range m.Parameters {
		if !m.Fixed[name] {
			names = append(names, name)
		}
	}
	return wording.List(names)
}

// Grid is the cells in rows and columns.
type Grid struct {
	Corner  string // what the heads of the rows are values of
	Over    string // what those of the columns are
	Columns []string
	Rows    []GridRow
}

// GridRow is one row of the grid.
type GridRow struct {
	Head  string
	Cells []int // positions; -1 = there is no such cell
}

// Grid arranges the cells in at most so many columns. The columns are the values of one parameter,
// if there are two or more: the last one that the baseline does not fix, so that a cell stands
// below its baseline.
func (m *Matrix) Grid(most int) Grid {
	p := m.columnParameter(most)
	g := Grid{Columns: []string{""}}
	if p >= 0 {
		g.Over, g.Columns = m.Parameters[p], m.Values(p)
	}
	var rest []string
	for i, name := range m.Parameters {
		if i != p {
			rest = append(rest, name)
		}
	}
	g.Corner = strings.Join(rest, " · ")
	for i := range m.Cells {
		head := m.headOf(i, p)
		at := slices.IndexFunc(g.Rows, func(r GridRow) bool { return r.Head == head })
		if at < 0 {
			at = len(g.Rows)
			empty := slices.Repeat([]int{-1}, len(g.Columns))
			g.Rows = append(g.Rows, GridRow{Head: head, Cells: empty})
		}
		column := 0
		if p >= 0 {
			column = slices.Index(g.Columns, m.Cells[i].Values[p])
		}
		g.Rows[at].Cells[column] = i
	}
	return g
}

// columnParameter is the parameter whose values are the columns; -1 = none is.
func (m *Matrix) columnParameter(most int) int {
	fits := func(p int) bool { n := len(m.Values(p)); return n >= 2 && n <= most }
	if len(m.Parameters) < 2 {
		return -1
	}
	for p := len(m.Parameters) - 1; p >= 0; p-- {
		if !m.Fixed[m.Parameters[p]] && fits(p) {
			return p
		}
	}
	for p := len(m.Parameters) - 1; p >= 0; p-- {
		if fits(p) {
			return p
		}
	}
	return -1
}

// headOf is the values of a cell but for those of the parameter p.
func (m *Matrix) headOf(cell, p int) string {
	if len(m.Parameters) == 0 {
		return m.Cells[cell].Name
	}
	var values []string
	for i, v := range m.Cells[cell].Values {
		if i != p {
			values = append(values, wording.Numbered(v))
		}
	}
	return strings.Join(values, " · ")
}

// ColumnHead names a value of a parameter: 1,000 users, rate 200, or the value alone if it is a
// word.
func ColumnHead(parameter, v string) string {
	_, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil || parameter == "":
		return v
	case strings.HasSuffix(parameter, "s"): // what is counted
		return wording.Numbered(v) + " " + parameter
	}
	return parameter + " " + wording.Numbered(v)
}
