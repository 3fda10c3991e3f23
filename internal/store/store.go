package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"shaperd/internal/secret"
)

// DefaultTimeout is a request's deadline where Options name none.
const DefaultTimeout = 100 * time.Millisecond

// Options say where the cluster's Redis is.
type Options struct {
	// Addrs are host:port. One is a server of its own; several with Sentinel are
	// Sentinels; several without are nodes of a Redis Cluster, which has no DB but 0.
	Addrs []string
	// Sentinel is the name of the master that the Sentinels watch; "" for none.
	Sentinel string
	// TLS is spoken with all of them, or with none.
	TLS bool
	// User is an ACL user; "" for the default one.
	User string
	// DB is the number of a database.
	DB int
	// PasswordFile holds the user's password, in one line; "" for none. It is read
	// again for each connection, so that a password can change. Sentinels are
	// asked without one.
	PasswordFile string
	// CAFile holds the certificates, in PEM, that a server's must be signed by; ""
	// means the system's.
	CAFile string
	// Timeout is the deadline of a request, connecting included; 0 means
	// DefaultTimeout. A server that is slower is taken for away.
	Timeout time.Duration
	// Backoff is the longest time that passes without a request while the server
	// is away, so the time until it is found again; 0 means DefaultBackoff.
	Backoff time.Duration
}

// connections is how many a Store has at most, to each node of a Redis Cluster. A
// Redis is one thread: more would not make it faster.
const connections = 32

// A Store is a connection to the Redis that a cluster shares.
type Store struct {
	client   redis.UniversalClient
	addrs    []string
	sentinel string
	timeout  time.Duration
	breaker  *breaker
}

// quiet keeps the library from writing to standard error: who asks gets the error.
var quiet = sync.OnceFunc(logging.Disable)

// New makes a Store without asking the network for anything. An error is in the
// options, or in a file that they name. The caller must call Close.
func New(o Options) (*Store, error) {
	quiet()
	if len(o.Addrs) == 0 {
		return nil, errors.New("redis: no address")
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	u := &redis.UniversalOptions{
		Addrs: o.Addrs, MasterName: o.Sentinel, DB: o.DB, Username: o.User,
		DisableIdentity: true, Protocol: 2,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		// A script that ran may not be run again by the library, which knows nothing of sequence numbers.
		MaxRetries: -1, MaxRedirects: 1, DialerRetries: 1, ContextTimeoutEnabled: true,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
		// Less than the deadline, so that who gets no connection is told apart from who gets no answer.
		PoolSize: connections, PoolTimeout: timeout / 2,
		PipelinePoolSize: -1, ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
	}
	if o.PasswordFile != "" {
		if _, err := readPassword(o.PasswordFile); err != nil {
			return nil, err
		}
		u.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := readPassword(o.PasswordFile)
			return o.User, password, err
		}
	}
	if o.TLS {
		u.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.CAFile != "" {
			pool, err := readCertificates(o.CAFile)
			if err != nil {
				return nil, err
			}
			u.TLSConfig.RootCAs = pool
		}
	}
	s := &Store{client: redis.NewUniversalClient(u), addrs: o.Addrs, sentinel: o.Sentinel, timeout: timeout, breaker: newBreaker(cmp.Or(o.Backoff, DefaultBackoff))}
	s.client.AddHook(guard{s})
	return s, nil
}

// at names the servers in messages.
func (s *Store) at() string { return strings.Join(s.addrs, ", ") }

// Client is the library's client, for single commands. Its requests have the
// deadline and the circuit breaker, and their errors are explained.
func (s *Store) Client() redis.UniversalClient { return s.client }

// Connections is how many requests can be under way at once. Others wait for one
// to end, for half the deadline; then they fail, which says nothing of the server.
func (s *Store) Connections() int { return connections }

// Timeout is the deadline of a request.
func (s *Store) Timeout() time.Duration { return s.timeout }

// Backoff is the longest time that passes without a request while the server is away.
func (s *Store) Backoff() time.Duration { return s.breaker.longest }

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }

// Problem returns what the last request failed with, an *AwayError, or nil when it
// was answered or there was none yet. It asks nobody.
func (s *Store) Problem() error {
	if p := s.breaker.last(); p != nil {
		return p
	}
	return nil
}

func readPassword(path string) (string, error) {
	b, err := secret.Read(path)
	if err != nil {
		return "", fmt.Errorf("read redis password: %w", err)
	}
	password := strings.TrimRight(string(b), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("redis password file %q: it must hold one line, the password", path)
	}
	return password, nil
}

func readCertificates(path string) (*x509.CertPool, error) {
	b, err := secret.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read redis CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("redis CA file %q: no certificate in it: PEM is needed", path)
	}
	return pool, nil
}
