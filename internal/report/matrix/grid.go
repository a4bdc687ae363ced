package matrix

import (
	"slices"
	"strconv"
	"strings"
)

// grid is the cells in rows and columns.
type grid struct {
	Corner  string // what the heads of the rows are values of
	Over    string // what those of the columns are
	Columns []string
	Rows    []gridRow
}

// gridRow is one row of the grid.
type gridRow struct {
	Head  string
	Cells []int // positions; -1 = there is no such cell
}

// Limits of the number of columns: more would be too narrow for a curve, or for a number.
const (
	columnsWithCurves = 5
	columnsWithout    = 8
)

// grid arranges the cells. The columns are the values of one parameter, if there are two or more: the last one that the baseline does not fix, so that a cell
// stands below its baseline.
func (m *Matrix) grid(most int) grid {
	p := m.columnParameter(most)
	g := grid{Columns: []string{""}}
	if p >= 0 {
		g.Over, g.Columns = m.Parameters[p], m.values(p)
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
		at := slices.IndexFunc(g.Rows, func(r gridRow) bool { return r.Head == head })
		if at < 0 {
			at = len(g.Rows)
			empty := slices.Repeat([]int{-1}, len(g.Columns))
			g.Rows = append(g.Rows, gridRow{head, empty})
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
	fits := func(p int) bool { n := len(m.values(p)); return n >= 2 && n <= most }
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

// values are those of a parameter, in the order of the matrix.
func (m *Matrix) values(p int) (values []string) {
	for i := range m.Cells {
		if v := m.Cells[i].Values[p]; !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// headOf is the values of a cell but for those of the parameter p.
func (m *Matrix) headOf(cell, p int) string {
	if len(m.Parameters) == 0 {
		return m.Cells[cell].Name
	}
	var values []string
	for i, v := range m.Cells[cell].Values {
		if i != p {
			values = append(values, numbered(v))
		}
	}
	return strings.Join(values, " · ")
}

// columnHead names a value of a parameter: 1,000 users, rate 200, or the value alone if it is a word.
func columnHead(parameter, v string) string {
	_, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil || parameter == "":
		return v
	case strings.HasSuffix(parameter, "s"): // what is counted
		return numbered(v) + " " + parameter
	}
	return parameter + " " + numbered(v)
}

// groupOf is the values of a cell that its baseline does not have: what the comparison is about; and matched those that both have.
func (m *Matrix) groupOf(cell int) (group, matched string) {
	c := &m.Cells[cell]
	if len(m.Parameters) == 0 {
		return c.Name, ""
	}
	var of, rest []string
	for i, name := range m.Parameters {
		switch {
		case m.Fixed[name]:
			of = append(of, numbered(c.Values[i]))
		default:
			rest = append(rest, columnHead(name, c.Values[i]))
		}
	}
	return strings.Join(of, " · "), strings.Join(rest, " · ")
}

// fixedNames are the parameters that the baseline fixes.
func (m *Matrix) fixedNames() string {
	var names []string
	for _, name := range m.Parameters {
		if m.Fixed[name] {
			names = append(names, name)
		}
	}
	return strings.Join(names, " · ")
}
