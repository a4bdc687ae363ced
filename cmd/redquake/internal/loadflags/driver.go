package loadflags

import (
	"encoding/json"
	"fmt"

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
		if !all.Set(given) {
			return fmt.Errorf("--driver-option %q must be NAME=VALUE, or OBJECT.NAME=VALUE", given)
		}
	}
	text, err := json.Marshal(all)
	client.Options = &runtime.RawExtension{Raw: text}
	return err
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
