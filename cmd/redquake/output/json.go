package output

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes v for programs: indented, one object, a newline at its end.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
