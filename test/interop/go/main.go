// A process of a Go service that uses redsync, driven by a test: a line comes in, `lock <name> <ms>` or `unlock <name>`,
// and `true` or `false` goes out; for `load <JSON>` of the benchmark, what it came to. Its arguments are the addresses of the
// servers. It ends when nothing can come in any more.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

func main() {
	var pools []redis.Pool
	for _, address := range os.Args[1:] {
		pools = append(pools, goredis.NewPool(client.NewClient(&client.Options{Addr: address})))
	}
	locks := redsync.New(pools...)
	held := map[string]*redsync.Mutex{}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		command := strings.Fields(in.Text())
		name := command[1]
		switch command[0] {
		case "lock":
			ms, _ := strconv.Atoi(command[2])
			mutex := locks.NewMutex(name, redsync.WithExpiry(time.Duration(ms)*time.Millisecond), redsync.WithTries(1))
			err := mutex.Lock()
			if err == nil {
				held[name] = mutex
			}
			fmt.Println(err == nil)
		case "unlock":
			done, _ := held[name].Unlock()
			fmt.Println(done)
		case "load":
			var order load
			if err := json.Unmarshal([]byte(in.Text()[len("load "):]), &order); err != nil {
				panic(err)
			}
			came, _ := json.Marshal(runLoad(locks, order))
			fmt.Println(string(came))
		}
	}
}
