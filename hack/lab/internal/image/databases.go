package image

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

//go:embed postgres.sh
var postgresScript []byte

//go:embed mariadb.sh
var mariadbScript []byte

// Postgres is an image of this machine's PostgreSQL. Of what the server loads at runtime it has
// only what a new database holds.
func Postgres() (Spec, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return Spec{}, errors.New("there is no PostgreSQL server; install it: apt-get install postgresql")
	}
	bin := filepath.Dir(found[len(found)-1])
	version, err := versionOf(found[len(found)-1], `\) (\d+\.\d+)`)
	if err != nil {
		return Spec{}, err
	}
	major, _, _ := strings.Cut(version, ".")
	share, err := folder("/usr/share/postgresql/" + major)
	if err != nil {
		return Spec{}, err
	}
	lib := filepath.Join(filepath.Dir(bin), "lib")
	programs := []string{lib + "/plpgsql.so", lib + "/dict_snowball.so"}
	for _, name := range []string{"postgres", "initdb", "pg_ctl", "psql", "pg_isready"} {
		programs = append(programs, filepath.Join(bin, name))
	}
	return database("postgres", postgresScript, programs, share, Spec{
		Tags: []string{settings.PostgresImage + ":" + major, settings.PostgresImage + ":" + version},
		Config: v1.Config{
			Cmd:          []string{"postgres"},
			StopSignal:   "SIGINT",
			ExposedPorts: map[string]struct{}{"5432/tcp": {}},
			Env: []string{
				searchPath + ":" + bin, "PG_MAJOR=" + major,
				"PGDATA=/var/lib/postgresql/data",
			},
		},
	}, "/var/lib/postgresql", "/var/lib/postgresql/data", "/var/run/postgresql")
}

// MariaDB is an image of this machine's MariaDB.
func MariaDB() (Spec, error) {
	const server = "/usr/sbin/mariadbd"
	version, err := versionOf(server, `Ver (\d+\.\d+\.\d+)`)
	if err != nil {
		return Spec{}, fmt.Errorf("%w; install it: apt-get install mariadb-server", err)
	}
	share, err := folder("/usr/share/mysql")
	if err != nil {
		return Spec{}, err
	}
	programs := []string{server}
	for _, name := range []string{
		"mariadb-install-db", "mariadb", "mariadb-admin",
		"my_print_defaults",
	} {
		programs = append(programs, filepath.Join("/usr/bin", name))
	}
	series := version[:strings.LastIndex(version, ".")]
	return database("mysql", mariadbScript, programs, share, Spec{
		Tags: []string{settings.MariaDBImage + ":" + series, settings.MariaDBImage + ":" + version},
		Config: v1.Config{
			Cmd: []string{"mariadbd"}, ExposedPorts: map[string]struct{}{"3306/tcp": {}},
			Env: []string{searchPath, "MARIADB_VERSION=" + version},
		},
	}, "/var/lib/mysql", "/run/mysqld")
}

// database completes the image of a database under the official image's names: its user has the
// number 999 and owns the folders.
func database(
	user string, script []byte, programs []string, share Files, spec Spec, owned ...string,
) (Spec, error) {
	tools, err := busybox()
	if err != nil {
		return Spec{}, err
	}
	spec.Files = merge(base(user, 999), tools, share, Files{
		"/usr/local/bin/docker-entrypoint.sh": {Data: script, Mode: 0o755},
	})
	for _, path := range programs {
		files, err := atItsPlace(path)
		if err != nil {
			return Spec{}, err
		}
		spec.Files = merge(spec.Files, files)
	}
	for _, dir := range owned {
		spec.Files[dir] = File{Dir: true, Mode: 0o777, Owner: 999}
	}
	spec.Config.Entrypoint = []string{"docker-entrypoint.sh"}
	return spec, nil
}

// folder is all files of a folder of this machine.
func folder(path string) (Files, error) {
	files := Files{}
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files[file] = File{Source: file, Mode: 0o644}
		}
		return err
	})
	return files, err
}

// versionOf is the version of a program, the first group of expression in what it prints.
func versionOf(program, expression string) (string, error) {
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", program, err)
	}
	match := regexp.MustCompile(expression).FindSubmatch(out)
	if match == nil {
		return "", fmt.Errorf("%s --version printed %q, without a version like %s", program,
			strings.TrimSpace(string(out)), expression)
	}
	return string(match[1]), nil
}
