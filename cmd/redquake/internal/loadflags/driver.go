package loadflags

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/words"
	"github.com/redquake/redquake/internal/plan"
)

// isLibrary reports whether the client is a library that applications use.
func isLibrary(c *v1alpha1.LoadClient) bool {
	return plan.Driver(c.Driver).IsLibrary()
}

// applyOptions overrides the options of the driver's library with those of the flags.
func (f *Flags) applyOptions(client *v1alpha1.LoadClient) error {
	if len(f.driverOptions) == 0 {
		return nil
	}
	var all plan.Options
	if client.Options != nil {
		if err := json.Unmarshal(client.Options.Raw, &all); err != nil {
			return err
		}
	}
	if all == nil {
		all = plan.Options{}
	}
	for _, given := range f.driverOptions {
		name, value, ok := strings.Cut(given, "=")
		if !ok || name == "" || !setOption(all, strings.Split(name, "."), valueOf(value)) {
			return fmt.Errorf("--driver-option %q must be NAME=VALUE, or OBJECT.NAME=VALUE", given)
		}
	}
	text, err := json.Marshal(all)
	client.Options = &runtime.RawExtension{Raw: text}
	return err
}

// valueOf is what JSON makes of a value, or the text itself.
func valueOf(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return json.RawMessage(text)
}

// setOption sets the value at a path; false if something else than an object is on the way.
func setOption(all map[string]any, path []string, value any) bool {
	if len(path) == 1 {
		all[path[0]] = value
		return path[0] != ""
	}
	inner, ok := all[path[0]].(map[string]any)
	if !ok {
		if all[path[0]] != nil {
			return false
		}
		inner = map[string]any{}
		all[path[0]] = inner
	}
	return setOption(inner, path[1:], value)
}

// useAdapter has the load generator start the adapter of the driver's library.
func (f *Flags) useAdapter(client *plan.Client) error {
	if !client.Driver.IsLibrary() || client.Driver.Language() == plan.Go {
		return nil
	}
	command, err := words.Split(f.adapter)
	if err != nil {
		return fmt.Errorf("--adapter: %w", err)
	}
	if len(command) == 0 {
		return fmt.Errorf("--driver %s needs --adapter: the program that drives its library, such as "+
			"bin/adapters/%[1]s, which hack/adapters.sh builds", client.Driver)
	}
	client.Adapter = &plan.Adapter{Command: command}
	return nil
}
