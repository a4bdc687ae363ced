package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/image"
)

const imageHelp = `usage: lab image NAME [OPTIONS]

  redquake --manager PATH --redquake PATH --netfault PATH --tag NAME -o FILE   the project's image, from three static binaries
  redquake --oci --manager PATH --redquake PATH --netfault PATH [--manager PATH ...]... --tag NAME -o FILE
                     the same for several architectures, those of its binaries, as an OCI archive for registries; prints its digest.
                     Also --version, --revision, --created (RFC 3339) for its labels
  static --program PATH --tag NAME -o FILE                     a static program alone, run by user 65532
  redis -o FILE      redis of this machine's Debian packages, named docker.io/library/redis:7 and :7.x.y
  redis-8 -o FILE    the same of Redis 8, named docker.io/library/redis:8 and :8.x.y; hack/newer-servers.sh installs it
  valkey-9 -o FILE   the same of Valkey 9, named docker.io/valkey/valkey:9 and :9.x.y
  postgres -o FILE   PostgreSQL of this machine's Debian packages, named docker.io/library/postgres:15 and :15.x
  mariadb -o FILE    MariaDB of this machine's Debian packages, named docker.io/library/mariadb:10.11 and :10.11.x
  prometheus -o FILE Prometheus of this machine's Debian package, named docker.io/prom/prometheus:v2.x.y
  client --language LANGUAGE --adapters FOLDER --tag NAME -o FILE   adapters of client libraries, as hack/adapters.sh builds them into FOLDER,
                     with this machine's runtime; the languages are python, node, java and rust
  chaos-daemon --program PATH --nsexec PATH --tag NAME -o FILE   Chaos Mesh's agent with what it calls; make build/chaos-daemon builds both
  pause -o FILE      what holds a pod's namespaces
  coredns -o FILE    the cluster's DNS

FILE is a docker archive unless it is said otherwise, for: lab load FILE. An image that is there already is left alone.
`

func buildImage(ctx context.Context, args []string) error {
	if len(args) == 0 || wantsHelp(args) {
		fmt.Print(imageHelp)
		return nil
	}
	flags := flag.NewFlagSet("lab image "+args[0], flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), imageHelp) }
	var managers, redquakes, netfaults paths
	var of image.Build
	out := flags.String("o", "", "the archive to write")
	oci := flags.Bool("oci", false, "write an OCI archive")
	flags.Var(&managers, "manager", "the static manager binary")
	flags.Var(&redquakes, "redquake", "the static redquake binary")
	flags.Var(&netfaults, "netfault", "the static netfault binary")
	program := flags.String("program", "", "a program, static unless it is chaos-daemon")
	nsexec := flags.String("nsexec", "", "the static program that chaos-daemon calls as nsexec and pause")
	language := flags.String("language", "", "the language of a client image")
	adapters := flags.String("adapters", "", "the folder with the adapters of a client image")
	tag := flags.String("tag", "", "the image's name")
	flags.StringVar(&of.Version, "version", "", "the version in the labels")
	flags.StringVar(&of.Revision, "revision", "", "the commit in the labels")
	flags.Func("created", "the time in the labels", func(text string) (err error) {
		of.Created, err = time.Parse(time.RFC3339, text)
		return err
	})
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *out == "":
		return errors.New("-o FILE is missing")
	}
	if args[0] == "redquake" {
		specs, err := redquakeSpecs(managers, redquakes, netfaults, *tag, of)
		if err != nil {
			return err
		}
		if *oci {
			return writeIndex(*out, specs)
		}
		if len(specs) > 1 {
			return errors.New("several architectures need --oci: a docker archive holds one")
		}
		return writeImage(*out, specs[0])
	}
	spec, err := imageSpec(ctx, args[0], parts{
		program:  *program,
		nsexec:   *nsexec,
		language: *language,
		adapters: *adapters,
		tag:      *tag,
	})
	if err != nil {
		return err
	}
	return writeImage(*out, spec)
}

// paths are the values of a flag that may be given several times.
type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }

func (p *paths) Set(path string) error {
	*p = append(*p, path)
	return nil
}

// redquakeSpecs is the project's image, for the architecture of each set of programs.
func redquakeSpecs(
	managers, redquakes, netfaults []string, tag string, of image.Build,
) ([]image.Spec, error) {
	n := len(managers)
	if n == 0 || n != len(redquakes) || n != len(netfaults) || tag == "" {
		return nil, errors.New(
			"--manager, --redquake, --netfault and --tag are needed, the first three equally often")
	}
	specs := make([]image.Spec, len(managers))
	for i := range managers {
		var err error
		if specs[i], err = image.Redquake(image.Programs{
			Manager:  managers[i],
			Redquake: redquakes[i],
			Netfault: netfaults[i],
		}, tag, of); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

func writeIndex(out string, specs []image.Spec) error {
	digest, err := image.WriteIndex(out, specs...)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "wrote", out, specs[0].Tags)
	fmt.Println(digest)
	return nil
}

func writeImage(out string, spec image.Spec) error {
	reused, err := spec.Write(out)
	if err != nil {
		return err
	}
	verb := "wrote"
	if reused {
		verb = "unchanged:"
	}
	fmt.Fprintln(os.Stderr, verb, out, spec.Tags)
	return nil
}

// parts are what the flags say an image is made of.
type parts struct{ program, nsexec, language, adapters, tag string }

func imageSpec(ctx context.Context, name string, of parts) (image.Spec, error) {
	switch name {
	case "client":
		if of.language == "" || of.adapters == "" || of.tag == "" {
			return image.Spec{}, errors.New("--language, --adapters and --tag are needed")
		}
		return image.Client(of.language, of.adapters, of.tag)
	case "static":
		if of.program == "" || of.tag == "" {
			return image.Spec{}, errors.New("--program and --tag are needed")
		}
		return image.Static(of.program, of.tag)
	case "chaos-daemon":
		if of.program == "" || of.nsexec == "" || of.tag == "" {
			return image.Spec{}, errors.New("--program, --nsexec and --tag are needed")
		}
		return image.ChaosDaemon(of.program, of.nsexec, of.tag)
	case "redis":
		return image.Redis()
	case "redis-8":
		return image.Redis8()
	case "valkey-9":
		return image.Valkey9()
	case "postgres":
		return image.Postgres()
	case "mariadb":
		return image.MariaDB()
	case "prometheus":
		return image.Prometheus()
	case "pause", "coredns":
		dir, err := binaries(ctx)
		if err != nil {
			return image.Spec{}, err
		}
		if name == "pause" {
			return image.Pause(filepath.Join(dir, name)), nil
		}
		return image.CoreDNS(filepath.Join(dir, name)), nil
	}
	return image.Spec{}, fmt.Errorf("no image is called %q; see: lab image --help", name)
}
