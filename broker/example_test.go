package broker_test

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// A test of a program that uses RabbitMQ can have a broker of its own, in the
// same process and within milliseconds.
func Example() {
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0" // a free port
	cfg.InMemory = true
	b := broker.New(cfg, nil)
	addr, err := b.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := b.Stop(context.Background()); err != nil {
			fmt.Println(err)
		}
	}()
	if err := greet("amqp://guest:guest@" + addr.String() + "/"); err != nil {
		fmt.Println(err)
	}
	// Output: hello
}

// greet sends a message to itself.
func greet(url string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		return err
	}
	err = ch.PublishWithContext(context.Background(), "", q.Name, false, false, amqp.Publishing{Body: []byte("hello")})
	if err != nil {
		return err
	}
	d, _, err := ch.Get(q.Name, true)
	fmt.Println(string(d.Body))
	return err
}
