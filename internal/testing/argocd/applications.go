package argocd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/testing/await"
)

// A Sync is the state of a sync of an application.
type Sync struct {
	Phase, Message, StartedAt string
	All                       map[string]any // the whole of it
}

// NewApplication returns an Application of the folder of its name in the repository. Only people
// begin its syncs.
func (a *Argo) NewApplication(name, destination string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1",
		"kind":       "Application",
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"project":     "default",
			"source":      map[string]any{"repoURL": "file://" + a.repository, "path": name, "targetRevision": "main"},
			"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": destination},
		},
	}}
}

// NewAutomated returns an Application that Argo CD syncs by itself, with options beside a
// server-side apply.
func (a *Argo) NewAutomated(name, destination string, options ...any) *unstructured.Unstructured {
	app := a.NewApplication(name, destination)
	a.Set(app, map[string]any{
		"automated":   map[string]any{},
		"syncOptions": append([]any{"ServerSideApply=true"}, options...),
		// the default is 5, each of which runs a test in a hook again
		"retry": map[string]any{"limit": int64(0)},
	}, "spec", "syncPolicy")
	return app
}

// Set sets a field of an Application.
func (a *Argo) Set(app *unstructured.Unstructured, value any, field ...string) {
	a.t.Helper()
	a.must(unstructured.SetNestedField(app.Object, value, field...))
}

// Create creates an Application until the test ends.
func (a *Argo) Create(app *unstructured.Unstructured) {
	a.t.Helper()
	a.create(app)
}

// Patch changes an Application by a merge patch.
func (a *Argo) Patch(app *unstructured.Unstructured, patch string) {
	a.t.Helper()
	a.must(a.client.Patch(a.t.Context(), app, client.RawPatch(types.MergePatchType, []byte(patch))))
}

const lookAgain = `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`

// Refresh lets Argo CD find a new commit.
func (a *Argo) Refresh(app *unstructured.Unstructured) {
	a.t.Helper()
	a.Patch(app, lookAgain)
}

// AwaitSync waits for the end of a sync other than an earlier one, or none; see gets each state on
// the way.
func (a *Argo) AwaitSync(app *unstructured.Unstructured, earlier Sync, see func(Sync)) (s Sync) {
	a.t.Helper()
	last := ""
	await.Within(a.t, 4*time.Minute, "the sync of "+app.GetName()+" ends", func() error {
		a.get(app)
		all, _, _ := unstructured.NestedMap(app.Object, "status", "operationState")
		s = Sync{textAt(all, "phase"), textAt(all, "message"), textAt(all, "startedAt"), all}
		if s.StartedAt == earlier.StartedAt {
			return fmt.Errorf("another has not started since %s", earlier.StartedAt)
		}
		if now := s.Phase + ": " + s.Message; now != last {
			a.t.Logf("%s: sync %s", app.GetName(), now)
			last = now
		}
		see(s)
		return await.That(slices.Contains([]string{"Succeeded", "Failed", "Error"}, s.Phase), "%s", last)
	})
	return s
}

// MustSync is AwaitSync of a sync that must succeed.
func (a *Argo) MustSync(app *unstructured.Unstructured, earlier Sync) Sync {
	a.t.Helper()
	s := a.AwaitSync(app, earlier, func(Sync) {})
	if s.Phase != "Succeeded" {
		a.t.Fatalf("the sync of %s is %s: %s", app.GetName(), s.Phase, s.Message)
	}
	return s
}

// IsSynced waits until Argo CD, which looks again, sees no difference between an application and
// the cluster.
func (a *Argo) IsSynced(app *unstructured.Unstructured) {
	a.t.Helper()
	since := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	a.Refresh(app)
	await.Within(a.t, 3*time.Minute, app.GetName()+" is synced", func() error {
		a.get(app)
		status, _, _ := unstructured.NestedString(app.Object, "status", "sync", "status")
		looked, _, _ := unstructured.NestedString(app.Object, "status", "reconciledAt")
		resources, _, _ := unstructured.NestedSlice(app.Object, "status", "resources")
		return await.That(status == "Synced" && looked > since, "%s: %v", status,
			slices.DeleteFunc(resources, func(r any) bool { return textAt(r.(map[string]any), "status") == "Synced" }))
	})
}

// Delete deletes an Application with all that it consists of, and waits until it is gone.
func (a *Argo) Delete(app *unstructured.Unstructured) {
	a.t.Helper()
	a.Patch(app, `{"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}}`)
	a.must(a.client.Delete(a.t.Context(), app))
	await.Within(a.t, 4*time.Minute, "Argo CD deletes "+app.GetName(), func() error {
		err := a.client.Get(a.t.Context(), client.ObjectKeyFromObject(app), app)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(app.Object, "status", "conditions")
		return await.That(err != nil, "it is there: %v", conditions)
	})
}

// deleteAtEnd deletes an object at the end of the test, whatever waits for it.
func (a *Argo) deleteAtEnd(object client.Object) {
	a.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if object.GetObjectKind().GroupVersionKind().Kind == "Application" {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := a.client.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
				a.t.Error(err)
			}
		}
		if err := client.IgnoreNotFound(a.client.Delete(ctx, object)); err != nil {
			a.t.Error(err)
		}
	})
}

func (a *Argo) get(app *unstructured.Unstructured) {
	a.t.Helper()
	a.must(a.client.Get(a.t.Context(), client.ObjectKeyFromObject(app), app))
}

func textAt(of map[string]any, key string) string {
	text, _ := of[key].(string)
	return text
}
