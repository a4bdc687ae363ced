package output

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes v as one indented JSON value with a newline at its end.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
