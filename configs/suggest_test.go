package configs

import (
	"fmt"
	"testing"
)

func TestNoSuchNamesWhatThereIs(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("customer%d", i))
	}
	for _, tt := range []struct {
		name  string
		names []string
		want  string
	}{
		{"web", nil, `there is no relay "web": the policy has none`},
		{"wbe", []string{"web", "mail"}, `there is no relay "wbe"; did you mean web?`},
		{"office", []string{"office-a", "office-b", "mail"}, `there is no relay "office"; did you mean office-a or office-b?`},
		{"voice", []string{"web", "mail"}, `there is no relay "voice": the policy has web, mail`},
		{"voice", many, `there is no relay "voice": the policy has customer0, customer1, customer2, customer3, customer4, customer5, ` +
			`customer6, customer7, customer8, customer9, customer10, customer11 and 28 more`},
	} {
		if got := NoSuch("relay", tt.name, tt.names).Error(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
