package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"shaperd/internal/secret"
)

const (
	admissionSubject = "admission"
	sharedSubject    = "shared"
)

// checkSecrets looks at the files that the policy names.
func checkSecrets(f *Facts) (list []Finding) {
	p := f.Policy
	for _, s := range []struct{ subject, key, path string }{
		{admissionSubject, "token_file", p.Admission.TokenFile},
		{sharedSubject, "password_file", p.Shared.Redis.PasswordFile},
		{sharedSubject, "ca_file", p.Shared.Redis.CAFile},
	} {
		if s.path != "" {
			list = append(list, f.secret(s.key, s.path).of(s.subject))
		}
	}
	return list
}

// secret is what is found about a file that the policy names with a key.
func (f *Facts) secret(key, path string) Finding {
	const cost = "shaperd does not start"
	name := strings.TrimPrefix(path, "/")
	about, err := fs.Stat(f.System, name)
	if err == nil {
		if unfit := secret.Fits(about); unfit != nil {
			return problem(fmt.Sprintf("%s %s %v", key, path, unfit), cost, "name a small regular file")
		}
	}
	text, err := fs.ReadFile(f.System, name)
	switch n := len(strings.TrimSpace(string(text))); {
	case errors.Is(err, fs.ErrPermission):
		return info(fmt.Sprintf("%s %s may not be read by who runs doctor", key, path), "", "")
	case err != nil:
		return problem(fmt.Sprintf("%s %s: %v", key, path, errors.Unwrap(err)), cost, "write it, readable for the service's user")
	case n == 0, key == "token_file" && n < 16:
		return problem(fmt.Sprintf("%s %s has %d characters", key, path, n), cost, "write a longer one, such as \"openssl rand -hex 32\" makes")
	}
	if key != "ca_file" { // which is no secret
		const cure = "chmod it to 600, owned by the service's user, or to 640, owned by root and of that user's group"
		switch mode := about.Mode().Perm(); {
		case mode&0o022 != 0:
			return warning(fmt.Sprintf("%s %s may be written by others than its owner (mode %04o)", key, path, mode), "others can replace it, and shaperd then takes theirs", cure)
		case mode&0o004 != 0:
			return warning(fmt.Sprintf("%s %s may be read by everybody (mode %04o)", key, path, mode), "every user of this host knows it, and can use it as shaperd's", cure)
		}
	}
	return ok("%s %s is there", key, path)
}
