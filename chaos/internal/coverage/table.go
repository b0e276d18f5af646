package coverage

// A Table has one sort of situations: each row with each column is one.
type Table struct {
	Name  string
	About string

	Rows, Columns []string
}

// A Situation is one pair of one table.
type Situation struct{ Table, Row, Column string }

func (s Situation) String() string { return s.Table + " | " + s.Row + " | " + s.Column }
