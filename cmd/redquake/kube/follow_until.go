package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// FollowUntil follows objects of a kind until check is done with each of them, or has an error. An
// object that is deleted meanwhile is one. namespace "" is all, name "" is all of the kind.
func (c *Client) FollowUntil(
	ctx context.Context, kind Kind, namespace, name string, of []types.UID,
	check func(*Object) (done bool, err error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan Change)
	if err := c.Follow(ctx, kind.GVR(), namespace, name, changes); err != nil {
		return err
	}
	waiting := map[types.UID]bool{}
	for _, uid := range of {
		waiting[uid] = true
	}
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change := <-changes:
			if change.Lasting {
				return change.Trouble
			}
			if change.Object == nil || !waiting[change.Object.GetUID()] {
				continue
			}
			if change.Deleted {
				return fmt.Errorf("%s %s was deleted meanwhile", kind.Name, change.Object.GetName())
			}
			o, err := ObjectOf(change.Object)
			if err != nil {
				return err
			}
			done, err := check(o)
			if err != nil {
				return err
			}
			if done {
				delete(waiting, o.Meta().UID)
			}
		}
	}
	return nil
}

// UIDs are those of objects, in their order.
func UIDs(all []*Object) (ids []types.UID) {
	for _, o := range all {
		ids = append(ids, o.Meta().UID)
	}
	return ids
}
