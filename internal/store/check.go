package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Report is what a server says of itself.
type Report struct {
	Server   string        // as it is configured
	Software string        // redis or valkey
	Version  string        // such as 7.0.15
	Mode     string        // standalone, sentinel or cluster: how shaperd reaches it
	Role     string        // master or slave, as Redis says it
	Eviction string        // what it does when its memory is full, maxmemory_policy
	Latency  time.Duration // of the fastest of a few requests
}

// oldest is the first version whose scripts may write after they asked for the time.
var oldest = [2]int{5, 0}

// Check asks the server about itself. It returns an *AwayError for a server that is
// of no use, with what is known of it till then. It blocks for a few requests.
func (s *Store) Check(ctx context.Context) (Report, error) {
	r := Report{Server: s.at(), Mode: s.mode()}
	for i := range 4 {
		start := time.Now()
		if err := s.client.Ping(ctx).Err(); err != nil {
			return r, err
		}
		if d := time.Since(start); i == 1 || d < r.Latency { // the first one connects
			r.Latency = d
		}
	}
	info := map[string]string{}
	for _, section := range []string{"server", "replication", "memory"} {
		text, err := s.client.Info(ctx, section).Result()
		if err != nil {
			return r, err
		}
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[key] = value
			}
		}
	}
	r.Software, r.Version = "redis", info["redis_version"]
	if v := info["valkey_version"]; v != "" {
		r.Software, r.Version = "valkey", v
	}
	r.Role, r.Eviction = info["role"], info["maxmemory_policy"]
	switch {
	case tooOld(info["redis_version"]):
		return r, &AwayError{Server: r.Server, What: "too old", Err: fmt.Errorf("version %s", r.Version),
			Cure: "Redis 5.0 or newer, or any Valkey, is needed"}
	case r.Role == "slave":
		return r, &AwayError{Server: r.Server, What: "a replica, which cannot be written to", Err: errors.New("its role is slave"),
			Cure: "name the master, or the Sentinels that know it"}
	case r.Mode == "standalone" && info["redis_mode"] == "cluster":
		return r, &AwayError{Server: r.Server, What: "a node of a Redis Cluster", Err: errors.New("its mode is cluster"),
			Cure: "name several of its nodes"}
	}
	return r, nil
}

func (s *Store) mode() string {
	switch {
	case s.sentinel != "":
		return "sentinel"
	case len(s.addrs) > 1:
		return "cluster"
	default:
		return "standalone"
	}
}

// tooOld compares the version that Redis and what is compatible with it state.
// One that cannot be read is not too old: the scripts will tell.
func tooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	if err != nil {
		return false
	}
	n, _ := strconv.Atoi(minor)
	return m < oldest[0] || m == oldest[0] && n < oldest[1]
}
