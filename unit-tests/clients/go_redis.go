// go-redis does a round of the commands that the server has, in RESP2 and RESP3.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
)

import "github.com/redis/go-redis/v9"

func check(what string, got, expected interface{}, err error) {
	if err != nil || !reflect.DeepEqual(got, expected) {
		log.Fatalf("%s: %v instead of %v, error %v", what, got, expected, err)
	}
}

// Null where the connection is to be plain text.
func tlsConfig() *tls.Config {
	path := os.Getenv("VARVE_TLS_CA")
	if path == "" {
		return nil
	}
	authority, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &tls.Config{RootCAs: pool}
}

func round(protocol int) {
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], TLSConfig: tlsConfig(), Protocol: protocol, ClientName: "round"})
	defer c.Close()
	check("FLUSHALL", c.FlushAll(ctx).Val(), "OK", nil)
	list, err := c.CommandList(ctx, nil).Result()
	has := map[string]bool{}
	top := 0
	for _, name := range list {
		has[name] = true
		if !strings.Contains(name, "|") {
			top++
		}
	}
	commands, err := c.Command(ctx).Result()
	check("COMMAND", len(commands), top, err)

	calls := []struct {
		command  string
		call     func() (interface{}, error)
		expected interface{}
	}{
		{"set", func() (interface{}, error) { return c.Set(ctx, "k", "v", 0).Result() }, "OK"},
		{"set", func() (interface{}, error) { return c.SetXX(ctx, "missing", "v", 0).Result() }, false},
		{"get", func() (interface{}, error) { return c.Get(ctx, "k").Result() }, "v"},
		{"mset", func() (interface{}, error) { return c.MSet(ctx, "a", "1", "b", "").Result() }, "OK"},
		{"mget", func() (interface{}, error) { return c.MGet(ctx, "a", "b", "c").Result() }, []interface{}{"1", "", nil}},
		{"incr", func() (interface{}, error) { return c.Incr(ctx, "a").Result() }, int64(2)},
		{"incrby", func() (interface{}, error) { return c.IncrBy(ctx, "a", 3).Result() }, int64(5)},
		{"incrbyfloat", func() (interface{}, error) { return c.IncrByFloat(ctx, "a", 0.5).Result() }, 5.5},
		{"append", func() (interface{}, error) { return c.Append(ctx, "k", "x").Result() }, int64(2)},
		{"getrange", func() (interface{}, error) { return c.GetRange(ctx, "k", 0, 0).Result() }, "v"},
		{"exists", func() (interface{}, error) { return c.Exists(ctx, "a", "z").Result() }, int64(1)},
		{"setbit", func() (interface{}, error) { return c.SetBit(ctx, "bits", 7, 1).Result() }, int64(0)},
		{"bitcount", func() (interface{}, error) { return c.BitCount(ctx, "bits", nil).Result() }, int64(1)},
		{"del", func() (interface{}, error) { return c.Del(ctx, "bits", "z").Result() }, int64(1)},
		{"dbsize", func() (interface{}, error) { return c.DBSize(ctx).Result() }, int64(3)},
	}
	for _, each := range calls {
		if has[each.command] {
			got, err := each.call()
			check(each.command, got, each.expected, err)
		}
	}
	if _, err := c.Get(ctx, "missing").Result(); err != redis.Nil {
		log.Fatalf("GET of a missing key: %v", err)
	}
	name, err := c.ClientGetName(ctx).Result()
	check("CLIENT GETNAME", name, "round", err)
	info, err := c.ClientInfo(ctx).Result()
	if err != nil || info.Resp != protocol || info.Name != "round" {
		log.Fatalf("CLIENT INFO: %v, %v", info, err)
	}
	keys, err := c.CommandGetKeys(ctx, "MSET", "a", "1", "b", "2").Result()
	check("COMMAND GETKEYS", keys, []string{"a", "b"}, err)

	pipeline := c.Pipeline()
	for i := 0; i < 1000; i++ {
		pipeline.Set(ctx, fmt.Sprint("p", i), i, 0)
	}
	_, err = pipeline.Exec(ctx)
	check("a pipeline", c.Get(ctx, "p999").Val(), "999", err)

	subscriber := c.PSubscribe(ctx, "n*")
	defer subscriber.Close()
	if _, err := subscriber.Receive(ctx); err != nil {
		log.Fatal(err)
	}
	reached, err := c.Publish(ctx, "news", "hello").Result()
	check("PUBLISH", reached, int64(1), err)
	message, err := subscriber.ReceiveMessage(ctx)
	if err != nil || message.Channel != "news" || message.Pattern != "n*" || message.Payload != "hello" {
		log.Fatalf("the message: %v, %v", message, err)
	}
	if err := subscriber.Ping(ctx, "alive"); err != nil {
		log.Fatal(err)
	}
	if err := c.Do(ctx, "NOSUCH").Err(); err == nil || !strings.Contains(err.Error(), "unknown command") {
		log.Fatalf("an unknown command: %v", err)
	}
}

// go-redis has no cache of its own: a subscriber hears of the keys that a connection has read.
func cache() {
	ctx := context.Background()
	ids := make(chan int64, 1)
	listener := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], TLSConfig: tlsConfig(), Protocol: 2,
		OnConnect: func(ctx context.Context, connection *redis.Conn) error {
			id, err := connection.ClientID(ctx).Result()
			ids <- id
			return err
		}})
	defer listener.Close()
	subscriber := listener.Subscribe(ctx, "__redis__:invalidate")
	defer subscriber.Close()
	if _, err := subscriber.Receive(ctx); err != nil {
		log.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], TLSConfig: tlsConfig()})
	defer c.Close()
	reader := c.Conn()
	defer reader.Close()
	if err := reader.Process(ctx, redis.NewStatusCmd(ctx, "CLIENT", "TRACKING", "ON", "REDIRECT", <-ids)); err != nil {
		log.Fatal(err)
	}
	check("GET", reader.Set(ctx, "cached", "1", 0).Val()+reader.Get(ctx, "cached").Val(), "OK1", nil)
	check("SET", c.Set(ctx, "cached", "2", 0).Val(), "OK", nil)
	message, err := subscriber.ReceiveMessage(ctx)
	if err != nil {
		log.Fatal(err)
	}
	check("the invalidation", message.PayloadSlice, []string{"cached"}, nil)
}

func main() {
	round(2)
	round(3)
	cache()
}
