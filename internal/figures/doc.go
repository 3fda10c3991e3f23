// Package figures writes amounts as people read them: three digits and a unit,
// and bars.
//
//	figures.Bits(62_340_000)               // 62.3mbit
//	figures.Bar(62.3e6, 100_000_000, 10)   // ██████▎···
//
// What has to be exact, such as a rate of the policy, is written by shaper's own
// types; programs get JSON. It owns nothing and may be used from anywhere.
package figures
