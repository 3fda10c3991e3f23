package configs

import (
	"strings"
	"testing"
)

// What is taken is what was written: nothing of a URL is dropped or read otherwise.
func TestURLsOfRedis(t *testing.T) {
	long := strings.Repeat("a.", 126) + "a" // 253, the most that a name may have
	for text, want := range map[string]redisURL{
		"redis://h":                         {host: "h"},
		"redis://h/":                        {host: "h"},
		"redis://h./3":                      {host: "h.", db: 3},
		"rediss://user@10.0.0.9:6380/15":    {host: "10.0.0.9", port: "6380", tls: true, user: "user", db: 15},
		"redis://a%2Cb%40c@h":               {host: "h", user: "a,b@c"},
		"redis://[2001:db8::1]:6379":        {host: "2001:db8::1", port: "6379"},
		"redis://[fe80::1%25eth0]:6379":     {host: "fe80::1%eth0", port: "6379"},
		"redis://" + long + ".:6379/0":      {host: long + ".", port: "6379"},
		"redis://redis_1.example.org:06379": {host: "redis_1.example.org", port: "06379"},
	} {
		var got redisURL
		if err := got.parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		if !redisForm.MatchString(text) {
			t.Errorf("%s: editors have it as wrong", text)
		}
	}
	const several, form = `several servers, and a URL has one; write a list of URLs, such as ["redis://10.0.0.8:6379", "redis://10.0.0.9:6379"]`, "it is no URL"
	for text, want := range map[string]string{
		"redis://a:6379,b:6379":           several,
		"redis://h,i":                     several,
		"redis://user@a:6379,b:6379/1":    several,
		"redis://u@a:1,u@b:2":             several,
		"redis://:se,cret@h":              "a password is not for a file",
		"redis://a,redis://b":             several,
		"redis://h:6379:6379":             `"h:6379" is no host`,
		"redis://2001:db8::1":             "in brackets; write redis://[2001:db8::1]",
		"redis://h?":                      "it has options",
		"redis://h#":                      form,
		"redis://h:":                      form,
		"redis://@h":                      form,
		"redis://a@b@h":                   form,
		"REDIS://h":                       form,
		"redis://h//1//":                  "its path is no database",
		"redis://h/1/":                    "its path is no database",
		"redis://10.0.0":                  "is no address",
		"redis://-h":                      "is no host",
		"redis://h..example.org":          "is no host",
		"redis://[::1::]":                 form,
		"redis://" + long + "aa":          "is no host",
		"redis://" + long + long + ":637": "is no host",
	} {
		if err := new(redisURL).parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if (want == several || want == form && text[8] != '[') && redisForm.MatchString(text) {
			t.Errorf("%s: editors have it as right", text)
		}
	}
}
