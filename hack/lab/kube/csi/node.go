package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/redquake/redquake/hack/lab/kube/csi/volume"
)

// node serves the CSI calls of one kubelet.
type node struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	id     string
	disk   volume.Disk
	mounts sync.Mutex // mounting is checked and done in one go
}

// runNode serves kubelet until it fails: the driver's socket, and the one by which kubelet finds
// it.
func runNode(id, kubeletRoot string, d volume.Disk) error {
	socket := filepath.Join(kubeletRoot, "plugins", driverName, "csi.sock")
	listener, err := listen(socket)
	if err != nil {
		return err
	}
	n := &node{id: id, disk: d}
	server := grpc.NewServer(grpc.UnaryInterceptor(logErrors))
	csi.RegisterIdentityServer(server, n)
	csi.RegisterNodeServer(server, n)
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(listener) }()

	registry := grpc.NewServer()
	registration.RegisterRegistrationServer(registry, &registrar{socket: socket})
	registryListener, err := listen(filepath.Join(kubeletRoot, "plugins_registry",
		driverName+"-reg.sock"))
	if err != nil {
		return err
	}
	go func() { failed <- registry.Serve(registryListener) }()
	log.Printf("node %s: serving %s", id, socket)
	return <-failed
}

func listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(socket); err != nil { // of a driver that was killed
		return nil, err
	}
	return net.Listen("unix", socket)
}

func logErrors(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	reply, err := handle(ctx, request)
	if err != nil {
		log.Printf("%s: %v", info.FullMethod, err)
	}
	return reply, err
}

func (n *node) GetPluginInfo(
	context.Context, *csi.GetPluginInfoRequest,
) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "1.0.0"}, nil
}

func (n *node) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: service}},
	}}, nil
}

func (n *node) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (n *node) NodeGetInfo(
	context.Context, *csi.NodeGetInfoRequest,
) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.id}, nil
}

func (n *node) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	stats := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_GET_VOLUME_STATS}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{
		{Type: &csi.NodeServiceCapability_Rpc{Rpc: stats}},
	}}, nil
}

func (n *node) NodeGetVolumeStats(
	_ context.Context, r *csi.NodeGetVolumeStatsRequest,
) (*csi.NodeGetVolumeStatsResponse, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(r.VolumePath, &s); err != nil {
		return nil, status.Errorf(codes.NotFound, "%s: %v", r.VolumePath, err)
	}
	block := int64(s.Bsize)
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{
			Unit:      csi.VolumeUsage_BYTES,
			Total:     int64(s.Blocks) * block,
			Available: int64(s.Bavail) * block,
			Used:      int64(s.Blocks-s.Bfree) * block,
		},
		{
			Unit:      csi.VolumeUsage_INODES,
			Total:     int64(s.Files),
			Available: int64(s.Ffree),
			Used:      int64(s.Files - s.Ffree),
		},
	}}, nil
}

func (n *node) NodePublishVolume(
	_ context.Context, r *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	n.mounts.Lock()
	defer n.mounts.Unlock()
	if volume.Mounted(r.TargetPath) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := n.disk.Mount(r.VolumeId, r.VolumeContext["backend"], r.TargetPath,
		r.Readonly); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	log.Printf("published %s at %s", r.VolumeId, r.TargetPath)
	if iops := r.VolumeContext["writeIOPS"]; iops != "" {
		go volume.Throttle(r.TargetPath, iops)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *node) NodeUnpublishVolume(
	_ context.Context, r *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	n.mounts.Lock()
	defer n.mounts.Unlock()
	if err := volume.Unmount(r.TargetPath); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := os.Remove(r.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	log.Printf("unpublished %s", r.VolumeId)
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
