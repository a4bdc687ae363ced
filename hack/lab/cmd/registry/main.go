// Command registry serves the lab's images to its nodes.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/registry"
)

func main() {
	data := flag.String("data", "", "the folder with the images, an OCI image layout")
	listen := flag.String("listen", "", "the address to listen on")
	flag.Parse()
	server := http.Server{
		Addr:              *listen,
		Handler:           registry.Store{Dir: *data}.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
