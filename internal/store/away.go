package store

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// An AwayError is why the cluster's Redis is of no use now.
type AwayError struct {
	Server string // host:port, or several of them
	What   string // is wrong
	Cure   string
	Err    error

	crowded bool // too many requests at once: it says nothing of the server
	local   bool // the request's, not the server's: others may be answered
	refused bool // the breaker did not make the request
}

// Error says what is wrong, with which server, and the cure.
func (p *AwayError) Error() string { return p.Problem() + ": " + p.Cure }

// Problem is what is wrong, with which server.
func (p *AwayError) Problem() string {
	return fmt.Sprintf("redis %s: %s (%s)", p.Server, p.What, reason(p.Err))
}

// reason is the text of an error without the address, which is said already, and
// without where in a script of ours the server found it.
func reason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	text, _, _ := strings.Cut(err.Error(), " script: ")
	return strings.TrimRight(text, ".,")
}

// Unwrap returns the cause.
func (p *AwayError) Unwrap() error { return p.Err }

// Asked tells whether the server was asked: not while the circuit breaker is open.
func (p *AwayError) Asked() bool { return !p.refused }

// ACL is the rule that a Redis user for shaperd needs.
const ACL = "~shaperd:* +@read +@write -@dangerous +eval +evalsha +time +ping +info +command +cluster|slots"

// complaints are errors of a server, by what their texts begin with or, when a
// script passes them on, contain.
var complaints = []struct {
	text, what, cure string
	local            bool
}{
	{"NOAUTH", "it wants a password", "write it to the password file", false},
	{"ERR Protocol error: unauthenticated", "it wants a password", "write it to the password file", false}, // to many arguments
	{"WRONGPASS", "wrong user or password", "correct the password file and the user in the URL", false},
	{"ERR invalid password", "wrong password", "correct the password file", false},
	{"ERR AUTH ", "it knows no password", "leave out the password file, or set a password there", false},
	{"ERR Client sent AUTH", "it knows no password", "leave out the password file, or set a password there", false},
	{"DENIED", "its protected-mode keeps others out", "set a password there, and write it to the password file", false},
	{"NOPERM", "its user may not do this", "give the user these rules: " + ACL, true},
	{"The user executing the script", "its user may not do this", "give the user these rules: " + ACL, true},
	{"failure in script: User ", "its user may not do this", "give the user these rules: " + ACL, true}, // Valkey's words for it
	{"READONLY", "a replica, which cannot be written to", "name the master, or the Sentinels that know it", false},
	{"OOM", "out of memory", "give it more maxmemory, and a Redis of its own", false},
	{"MISCONF", "it does not take writes since it cannot save", `free its disk, or "CONFIG SET stop-writes-on-bgsave-error no"`, false},
	{"NOREPLICAS", "it does not take writes without replicas", "bring its replicas back", false},
	{"LOADING", "it is loading its data", "wait; nothing of shaperd's needs to be saved there", false},
	{"MASTERDOWN", "its master is down", "bring the master back, or name the Sentinels", false},
	{"CLUSTERDOWN", "the Redis Cluster is down", `bring its nodes back; "redis-cli cluster info" says which slots have none`, false},
	{"BUSY ", "a script blocks it", `find out whose, and end it with "redis-cli script kill"`, false},
	{"ERR max number of clients", "it takes no more clients", "raise its maxclients", false},
	{"ERR DB index is out of range", "it has no such database", "name another in the URL, or none", false},
	{"Write commands not allowed after non deterministic", "too old", "Redis 5.0 or newer, or any Valkey, is needed", false},
	{"ERR This instance has cluster support disabled", "not a node of a Redis Cluster", "name one URL, or the Sentinels' master", false},
	{"MOVED", "a node of a Redis Cluster", "name several of its nodes", false},
}

// explain returns what an error says of the server; nil when it says nothing:
// no error, or an answer such as a script's own error.
func (s *Store) explain(err error) *AwayError {
	if err == nil || err.Error() == redis.Nil.Error() {
		return nil
	}
	if p, ok := errors.AsType[*AwayError](err); ok {
		return p
	}
	p := &AwayError{Server: s.at(), Err: err}
	if s.sentinel != "" {
		p.Server = fmt.Sprintf("%q of Sentinels %s", s.sentinel, s.at())
	}
	if s.sentinel != "" && errors.Is(err, redis.Nil) { // of a Sentinel, wrapped
		p.What, p.Cure, p.Err = "unknown", "name a master that the Sentinels watch", errors.New("the Sentinels know no such master")
		return p
	}
	if answer, ok := errors.AsType[redis.Error](err); ok {
		p.Err = answer
		text := answer.Error()
		for _, c := range complaints {
			_, passed, of := strings.Cut(text, "-"+c.text)
			if of { // in a script's own error
				p.Err = errors.New(c.text + passed)
			}
			if of || strings.HasPrefix(text, c.text) || !upper(c.text) && strings.Contains(text, c.text) {
				p.What, p.Cure, p.local = c.what, c.cure, c.local
				return p
			}
		}
		return nil
	}
	if errors.Is(err, redis.ErrPoolTimeout) {
		p.What, p.Cure, p.crowded = "all connections to it are in use", "ask for less at once", true
		return p
	}
	p.What, p.Cure = network(err)
	if slow(err) {
		p.Err = fmt.Errorf("nothing within %v", s.timeout)
	}
	return p
}

// upper tells whether a text begins with an error code.
func upper(text string) bool {
	code, _, _ := strings.Cut(text, " ")
	return code == strings.ToUpper(code)
}

// slow tells whether a deadline was the cause.
func slow(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// network says what is wrong on the way to a server.
func network(err error) (what, cure string) {
	var (
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return "its certificate is of an unknown authority", "name the authority's certificate in the CA file"
	case errors.As(err, &name):
		return "its certificate is another host's", "name the host in the URL as the certificate does"
	case errors.As(err, &invalid):
		return "its certificate is not valid", "renew it"
	case errors.As(err, &dns):
		return "no address of this name", "correct the host in the URL, or the name server"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "cannot connect", "start it there, or correct the URL or its bind"
	case slow(err):
		return "no answer", "see whether it runs, whether both ends speak TLS or none, and whether a firewall or its load is in the way"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "it closed the connection", "see whether its protected-mode keeps others out (a password ends that), and whether it wants TLS: then the URL begins with rediss://"
	default:
		return "cannot connect", "see whether it runs, and whether the URL and its TLS are right"
	}
}
