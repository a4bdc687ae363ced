package target

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationUserIDs on a namespace of OpenShift is the range of user IDs from which the security
// context constraint restricted-v2 assigns one to each pod.
// It refuses pods that ask for another.
const annotationUserIDs = "openshift.io/sa.scc.uid-range"

// AssignsUserIDs reports whether a namespace assigns the users of its pods.
func AssignsUserIDs(ctx context.Context, reader client.Reader, namespace string) (bool, error) {
	found := &corev1.Namespace{}
	if err := reader.Get(ctx, client.ObjectKey{Name: namespace},
		found); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return found.Annotations[annotationUserIDs] != "", nil
}
