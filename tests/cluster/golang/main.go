// What go-redis and redigo do with a node: main PORT. Each line is "name value"; see tests/cluster/test_go_clients.py.
package main

import (
	"fmt"
	"os"

	"github.com/gomodule/redigo/redis"
	goredis "gopkg.in/redis.v5"
)

func tell(name string, value interface{}, err error) {
	if err != nil {
		value = err
	}
	fmt.Println(name, value)
}

func length(client *goredis.Client, queue string) int64 {
	length := goredis.NewIntCmd("QLEN", queue)
	client.Process(length)
	return length.Val()
}

func goRedis(address string) {
	client := goredis.NewClient(&goredis.Options{Addr: address, ReadTimeout: -1})
	defer client.Close()
	job := goredis.NewStringCmd("ADDJOB", "go-redis", "body", 0)
	err := client.Process(job)
	tell("go-redis:add", job.Val() == "", err)
	got := goredis.NewSliceCmd("GETJOB", "FROM", "go-redis")
	err = client.Process(got)
	tell("go-redis:get", len(got.Val()), err)
	transaction := client.TxPipeline()
	transaction.Process(goredis.NewStringCmd("ADDJOB", "go-redis", "body", 0))
	_, err = transaction.Exec()
	tell("go-redis:multi", "done", err)
	tell("go-redis:left", length(client, "go-redis"), nil)
}

func redigo(address string) {
	connection, err := redis.Dial("tcp", address, redis.DialDatabase(0))
	if err != nil {
		tell("redigo:dial", nil, err)
		return
	}
	defer connection.Close()
	_, err = redis.String(connection.Do("ADDJOB", "redigo", "body", 0))
	tell("redigo:add", false, err)
	jobs, err := redis.Values(connection.Do("GETJOB", "FROM", "redigo"))
	tell("redigo:get", len(jobs), err)
	connection.Send("MULTI")
	connection.Send("ADDJOB", "redigo", "body", 0)
	_, err = connection.Do("EXEC")
	tell("redigo:multi", "done", err)
	left, err := redis.Int(connection.Do("QLEN", "redigo"))
	tell("redigo:left", left, err)
}

func main() {
	address := "127.0.0.1:" + os.Args[1]
	goRedis(address)
	redigo(address)
}
