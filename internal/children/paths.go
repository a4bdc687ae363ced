package children

// Where the load pods find their files. Whole directories are mounted, never a subPath: a rotated
// Secret does not reach a running pod through a subPath.
const (
	planDir     = "/etc/redquake/plan"
	agentDir    = "/etc/redquake/agent"
	passwordDir = "/etc/redquake/password"
	caDir       = "/etc/redquake/ca"
	certDir     = "/etc/redquake/cert"

	sentinelPasswordDir = "/etc/redquake/sentinel-password"
	sentinelCADir       = "/etc/redquake/sentinel-ca"
	sentinelCertDir     = "/etc/redquake/sentinel-cert"
	databaseDir         = "/etc/redquake/database"
)

// Names of the files there, and of the keys that hold them.
const (
	// PlanKey is the key of the plan in its ConfigMap.
	PlanKey = "plan.json"

	passwordFile = "password"
	dsnFile      = "dsn"
	caKey        = "ca.crt"
	certKey      = "tls.crt"
	privateKey   = "tls.key"
)
