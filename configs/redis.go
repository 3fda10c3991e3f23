package configs

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Redis says where a Redis or Valkey is.
type Redis struct {
	Addrs        []string // host:port
	Sentinel     string   // the master's name, where the addresses are those of Sentinels
	TLS          bool
	User         string // "" for the default one
	DB           int
	PasswordFile string        // "" for no password
	CAFile       string        // "" for the system's certificates
	Timeout      time.Duration // of a request: slower is away
	Backoff      time.Duration // the longest between two that try, while it is away
}

const redisTimeout = 100 * time.Millisecond

// Ports where a URL has none, as the programs have them.
const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// redis fills in where the Redis of a policy's shared classes is.
func (r *report) redis(out *Redis, s *sharedSpec) {
	period := defaultPeriod
	if s.Period.ok() {
		period = s.Period.v.Duration
	}
	*out = Redis{
		Sentinel: string(s.Sentinel.v), PasswordFile: string(s.PasswordFile.v), CAFile: string(s.CAFile.v),
		Timeout: min(redisTimeout, period/2), Backoff: period,
	}
	port := redisPort
	if s.Sentinel.given() {
		port = sentinelPort
	}
	all := s.Redis.values()
	for _, u := range all {
		out.Addrs = append(out.Addrs, net.JoinHostPort(u.host, cmp.Or(u.port, port)))
	}
	if !s.Redis.sound() || len(all) == 0 {
		return
	}
	first := all[0]
	out.TLS, out.User, out.DB = first.tls, first.user, first.db
	for _, u := range all {
		switch {
		case u.tls != first.tls:
			r.wrong(s.Redis.at.place, "write rediss:// in all, or in none", "some URLs are of TLS and some not")
		case u.user != first.user:
			r.wrong(s.Redis.at.place, "write the same user in all", "some URLs are of %s and some of %s", orNobody(first.user), orNobody(u.user))
		case u.db != first.db:
			r.wrong(s.Redis.at.place, "write the same in all", "some URLs are of database %d and some of %d", first.db, u.db)
		}
	}
	switch {
	case len(all) > 1 && !s.Sentinel.given() && first.db != 0:
		r.wrong(s.Redis.at.place, "leave it out, or name the master of Sentinels with sentinel", "several URLs are a Redis Cluster's, which has no database %d", first.db)
	case s.CAFile.given() && !first.tls:
		r.wrong(s.CAFile.at.key, "write rediss:// in the URL, or remove it", "ca_file is of TLS, and no URL is")
	}
}

func orNobody(user string) string {
	if user == "" {
		return "nobody"
	}
	return "user " + quote(user)
}

// A redisURL says where a Redis is.
type redisURL struct {
	host, port string
	tls        bool
	user       string
	db         int
}

// redisForm is what is written, for editors too: parse takes nothing else.
var redisForm = regexp.MustCompile(`^rediss?://([^:@/?#,]+@)?([A-Za-z0-9_.-]{1,254}|\[[0-9A-Fa-f:.]+(%25[^\]]+)?\])(:[0-9]{1,5})?(/[0-9]*)?$`)

// severalHosts is how other programs have several in one URL.
var severalHosts = regexp.MustCompile(`://([^@/?#,]*@)?[^:@/?#]*(:[0-9]+)?,`)

func (*redisURL) format() format {
	return format{what: "a URL of Redis", example: `"redis://10.0.0.9:6379"`, pattern: redisForm.String()}
}

func (u *redisURL) parse(text string) error {
	if severalHosts.MatchString(text) {
		return textErrorf(`write a list of URLs, such as ["redis://10.0.0.8:6379", "redis://10.0.0.9:6379"]`, "it has several servers, and a URL has one")
	}
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Scheme == "" || parsed.Opaque != "":
		return textErrorf(`write it as "redis://10.0.0.9:6379"`, "it is no URL")
	case parsed.Scheme != "redis" && parsed.Scheme != "rediss":
		return textErrorf("write redis://, or rediss:// for TLS", "%s is not spoken here", quote(parsed.Scheme))
	case parsed.Hostname() == "":
		return textErrorf(`write it as "redis://10.0.0.9:6379"`, "it has no host")
	case isAddr(parsed.Host) && strings.Contains(parsed.Host, ":"):
		return textErrorf(fmt.Sprintf("write %s://[%s]", parsed.Scheme, parsed.Host), "an IPv6 address is in brackets")
	case parsed.Port() != "" && (!isPort(parsed.Port()) || strings.Trim(parsed.Port(), "0") == ""):
		return textErrorf("write 1 to 65535", "its port is not from 1 to 65535")
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return textErrorf("end it with the host and port, or the database's number", "it has options")
	}
	if _, ok := parsed.User.Password(); ok {
		return textErrorf("put it into a file and name that with password_file", "a password is not for a file that others may read")
	}
	if err := knownHost(parsed.Hostname()); err != nil {
		return err
	}
	*u = redisURL{host: parsed.Hostname(), port: parsed.Port(), tls: parsed.Scheme == "rediss", user: parsed.User.Username()}
	if db := strings.TrimPrefix(parsed.Path, "/"); db != "" {
		n, err := strconv.ParseUint(db, 10, 16)
		if err != nil {
			return textErrorf("end it with the database's number, such as /0", "its path is no database")
		}
		u.db = int(n)
	}
	if !redisForm.MatchString(text) {
		return textErrorf(`write it as "redis://10.0.0.9:6379" or "rediss://user@10.0.0.9:6379/0"`, "it is no URL of a Redis")
	}
	return nil
}

// secret reports whether there may be a password in it.
func (*redisURL) secret(text string) bool { return strings.Contains(text, "@") }
