package main

import (
	"errors"
	"io/fs"
	"time"

	"shaperd/configs"
)

// loadPolicy reads the named policy file. Without a name it is policyFile
// where there is one, else the built-in policy.
func loadPolicy(name string) (*configs.Policy, error) {
	if name != "" {
		return configs.Load(name)
	}
	p, err := configs.Load(policyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return configs.Default()
	}
	return p, err
}

// loadPolicyNow reads the named policy file with the rates that its schedules
// give it at this time.
func loadPolicyNow(name string) (*configs.Policy, error) {
	p, err := loadPolicy(name)
	if err != nil {
		return nil, err
	}
	return p.At(time.Now(), nil)
}
