package target

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/target/confine"
)

// Reaches returns a Problem where no command would be sent to an address that a server named.
func (r Redis) Reaches(ctx context.Context, address, who, as string) error {
	c, confined := r.Servers.(confine.Servers)
	if !confined {
		return nil
	}
	_, err := c.Book.Resolve(ctx, address)
	return confine.NamedBy(err, who, as)
}

// PlaceOf is the address of the pod that is dialled for an address, such as that of a node port;
// the address itself where no pod is known.
func (r Redis) PlaceOf(ctx context.Context, address string) string {
	if c, confined := r.Servers.(confine.Servers); confined {
		if places, err := c.Book.Resolve(ctx, address); err == nil && len(places) > 0 {
			return places[0]
		}
	}
	return address
}

// residentAt is the pod of the namespace that an address leads to, and where it is dialled; ""
// where none is known, or several have the name.
func (r Redis) residentAt(
	ctx context.Context, address string,
) (place string, uid types.UID, name string) {
	c, confined := r.Servers.(confine.Servers)
	if !confined {
		return "", "", ""
	}
	places, err := c.Book.Resolve(ctx, address)
	if err != nil || len(places) != 1 {
		return "", "", ""
	}
	uid, name = c.Book.Occupant(ctx, places[0])
	return places[0], uid, name
}

// learn makes pods that were read known as places of commands.
func (r Redis) learn(since time.Time, pods ...corev1.Pod) {
	if c, confined := r.Servers.(confine.Servers); confined {
		c.Book.Learn(since, pods)
	}
}
