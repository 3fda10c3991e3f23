// Package near finds what a misspelled word most likely means.
//
//	near.Words("bakcup", []string{"web", "backup"}) // [backup]
//	near.Hint("bakcup", []string{"web", "backup"})  // ; did you mean backup?
//
// How much may differ grows with the length of the word: one change in two
// to four letters, two in longer ones. Letters that changed places are
// one change. The time it takes is bounded by the words, however long the text is.
//
// It owns nothing and may be used from anywhere.
package near
