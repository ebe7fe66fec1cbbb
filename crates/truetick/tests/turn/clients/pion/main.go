// Two clients of pion's library, each with an allocation, send payloads from relay to relay and back.
//
// Usage: pion-client SERVER USER PASSWORD PAYLOADS. Prints one line of JSON with the echoed payloads. With HOLD_SECONDS
// in the environment the call goes on for as long, with a payload a second. With CLOSED_PEER the caller first sends to that
// address, which has no listener.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/pion/turn/v5"
)

// Far beyond what a loaded machine needs.
const patience = 20 * time.Second

type held struct {
	Sent    int `json:"sent"`
	Matched int `json:"matched"`
}

type result struct {
	Held    held   `json:"held"`
	Mapped  string `json:"mapped"`
	Local   string `json:"local"`
	Caller  string `json:"caller"`
	Callee  string `json:"callee"`
	Matched int    `json:"matched"`
}

func main() {
	server, user, password := os.Args[1], os.Args[2], os.Args[3]
	payloads, err := strconv.Atoi(os.Args[4])
	exitOn("payloads", err)

	caller, callerConn := client(server, user, password)
	defer caller.Close()
	callee, _ := client(server, user, password)
	defer callee.Close()
	mapped, err := caller.SendBindingRequest()
	exitOn("binding", err)
	callerRelay, err := caller.Allocate()
	exitOn("allocate", err)
	calleeRelay, err := callee.Allocate()
	exitOn("allocate", err)
	exitOn("permission", caller.CreatePermission(calleeRelay.LocalAddr()))
	exitOn("permission", callee.CreatePermission(callerRelay.LocalAddr()))

	go echo(calleeRelay)
	if address := os.Getenv("CLOSED_PEER"); address != "" {
		closed, err := net.ResolveUDPAddr("udp4", address)
		exitOn("closed peer", err)
		_, err = callerRelay.WriteTo([]byte("is anybody there?"), closed)
		exitOn("closed peer", err)
	}
	matched := 0
	for number := range payloads {
		// Over the first ones the library binds its channel, so both ways of relaying are used.
		if !exchange(callerRelay, calleeRelay.LocalAddr(), payload(number)) {
			break
		}
		matched++
	}
	outcome := result{
		Held:   hold(callerRelay, calleeRelay.LocalAddr()),
		Mapped: mapped.String(), Local: callerConn.LocalAddr().String(),
		Caller: callerRelay.LocalAddr().String(), Callee: calleeRelay.LocalAddr().String(), Matched: matched,
	}
	exitOn("release", callerRelay.Close())
	exitOn("release", calleeRelay.Close())
	exitOn("result", json.NewEncoder(os.Stdout).Encode(outcome))
}

func hold(relay net.PacketConn, to net.Addr) held {
	var seen held
	seconds, _ := strconv.Atoi(os.Getenv("HOLD_SECONDS"))
	endsAt := time.Now().Add(time.Duration(seconds) * time.Second)
	for ; time.Now().Before(endsAt); seen.Sent++ {
		if exchange(relay, to, payload(seen.Sent)) {
			seen.Matched++
		}
		time.Sleep(time.Second)
	}
	return seen
}

func client(server, user, password string) (*turn.Client, net.PacketConn) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	exitOn("socket", err)
	client, err := turn.NewClient(&turn.ClientConfig{
		STUNServerAddr: server, TURNServerAddr: server, Conn: conn, Username: user, Password: password,
	})
	exitOn("client", err)
	exitOn("listen", client.Listen())
	return client, conn
}

func payload(number int) []byte {
	return bytes.Repeat([]byte{byte(number), byte(number >> 8), 0xa5}, 1+number%400)
}

func echo(relay net.PacketConn) {
	buffer := make([]byte, 2048)
	for {
		length, from, err := relay.ReadFrom(buffer)
		if err != nil {
			return
		}
		if _, err = relay.WriteTo(buffer[:length], from); err != nil {
			return
		}
	}
}

func exchange(relay net.PacketConn, to net.Addr, sent []byte) bool {
	if _, err := relay.WriteTo(sent, to); err != nil {
		return false
	}
	if err := relay.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return false
	}
	buffer := make([]byte, 2048)
	length, from, err := relay.ReadFrom(buffer)
	return err == nil && from.String() == to.String() && bytes.Equal(buffer[:length], sent)
}

func exitOn(step string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", step, err)
		os.Exit(1)
	}
}
