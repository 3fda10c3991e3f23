package store

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Ports where a URL has none, as the programs have them.
const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// A place is where a Redis is, without secrets.
type place struct {
	addrs []string // host:port
	tls   bool
	user  string
	db    int
}

// String names the servers in messages.
func (p place) String() string { return strings.Join(p.addrs, ", ") }

// CheckURL returns what is wrong with a URL of a Redis, and what would be right.
func CheckURL(text string) error {
	_, err := parseURL(text, redisPort)
	return err
}

func parsePlace(urls []string, sentinels bool) (place, error) {
	port := redisPort
	if sentinels {
		port = sentinelPort
	}
	if len(urls) == 0 {
		return place{}, errors.New(`redis: no URL: write one such as "redis://10.0.0.9:6379"`)
	}
	var all place
	for i, text := range urls {
		p, err := parseURL(text, port)
		if err != nil {
			return place{}, err
		}
		if i == 0 {
			all = p
			continue
		}
		if p.tls != all.tls || p.user != all.user || p.db != all.db {
			return place{}, fmt.Errorf("redis URLs %q and %q: they may differ in host and port only", urls[0], text)
		}
		all.addrs = append(all.addrs, p.addrs...)
	}
	return all, nil
}

func parseURL(text, defaultPort string) (place, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error repeats the text, and with it a password.
		return place{}, errors.New(`redis URL: not a URL: write one such as "redis://10.0.0.9:6379"`)
	}
	if _, set := u.User.Password(); set {
		return place{}, fmt.Errorf("redis URL %q: a password does not belong here: write it to the password file", u.Redacted())
	}
	p := place{user: u.User.Username()}
	switch u.Scheme {
	case "redis":
	case "rediss":
		p.tls = true
	default:
		return place{}, fmt.Errorf("redis URL %q: scheme %q: redis or rediss (TLS) is right", text, u.Scheme)
	}
	if u.Hostname() == "" {
		return place{}, fmt.Errorf(`redis URL %q: no host: write one such as "redis://10.0.0.9:6379"`, text)
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return place{}, fmt.Errorf("redis URL %q: port %q: 1 to 65535 is right", text, port)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return place{}, fmt.Errorf("redis URL %q: nothing may follow the database", text)
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		n, err := strconv.ParseUint(db, 10, 16)
		if err != nil {
			return place{}, fmt.Errorf("redis URL %q: database %q: a number is right", text, db)
		}
		p.db = int(n)
	}
	p.addrs = []string{net.JoinHostPort(u.Hostname(), port)}
	return p, nil
}
