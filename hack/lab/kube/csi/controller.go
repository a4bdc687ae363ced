package main

import (
	"context"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/redquake/redquake/hack/lab/kube/csi/volume"
)

// delays are how long the pretended storage system takes.
type delays struct{ attach, detach time.Duration }

// controller does what external-provisioner and external-attacher do for a usual driver.
type controller struct {
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	events    record.EventRecorder
	disk      volume.Disk
	delays    delays
}

func runController(ctx context.Context, kubeconfig string, d volume.Disk, t delays) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	c := &controller{
		client:    client,
		informers: informers.NewSharedInformerFactory(client, 30*time.Second),
		events:    broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: driverName}),
		disk:      d,
		delays:    t,
	}
	c.informers.Storage().V1().StorageClasses().Informer() // provision reads it
	c.work(ctx, c.informers.Core().V1().PersistentVolumeClaims().Informer(), c.provision)
	c.work(ctx, c.informers.Core().V1().PersistentVolumes().Informer(), c.reclaim)
	c.work(ctx, c.informers.Storage().V1().VolumeAttachments().Informer(), c.attachOrDetach)
	c.informers.Start(ctx.Done())
	c.informers.WaitForCacheSync(ctx.Done())
	log.Print("controller: running")
	<-ctx.Done()
	return nil
}

// work calls handle with the key of every object that changes, again and later if it fails.
func (c *controller) work(
	ctx context.Context, informer cache.SharedIndexInformer,
	handle func(context.Context, string) error,
) {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond,
		10*time.Second)
	queue := workqueue.NewTypedRateLimitingQueue(backoff)
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, now any) { add(now) },
		DeleteFunc: add,
	})
	for range 4 { // attaching takes its time; other volumes need not wait for it
		go func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				if err := handle(ctx, key); err != nil {
					log.Printf("%s: %v", key, err)
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		}()
	}
}
