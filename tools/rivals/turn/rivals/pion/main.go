// A TURN server on pion's library, as its simplest example sets one up: one listener, one user, relays on one address.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/pion/turn/v5"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		version()
		return
	}
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: pion-turn LISTEN RELAY-IP REALM USER PASSWORD | pion-turn version")
		os.Exit(2)
	}
	listen, relay, realm, user, password := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	listener, err := net.ListenPacket("udp4", listen)
	exitOn(err)
	key := turn.GenerateAuthKey(user, realm, password)
	server, err := turn.NewServer(turn.ServerConfig{
		Realm: realm,
		AuthHandler: func(asked *turn.RequestAttributes) (string, []byte, bool) {
			return asked.Username, key, asked.Username == user
		},
		PacketConnConfigs: []turn.PacketConnConfig{{
			PacketConn: listener,
			RelayAddressGenerator: &turn.RelayAddressGeneratorStatic{
				RelayAddress: net.ParseIP(relay),
				Address:      relay,
			},
		}},
	})
	exitOn(err)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
	exitOn(server.Close())
}

func version() {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/pion/turn/v5" {
			fmt.Println("pion/turn", module.Version, build.GoVersion)
		}
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
