package management

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The types below are what clients of the API declare, by the members that they read.
// The tag "may" lists what else a member may be: "absent", "null".

type (
	tRate struct {
		Rate float64 `json:"rate"`
	}
	tMessageStats struct {
		Publish           int64 `json:"publish" may:"absent"`
		PublishDetails    tRate `json:"publish_details" may:"absent"`
		DeliverGet        int64 `json:"deliver_get" may:"absent"`
		DeliverGetDetails tRate `json:"deliver_get_details" may:"absent"`
		Ack               int64 `json:"ack" may:"absent"`
		AckDetails        tRate `json:"ack_details" may:"absent"`
		PublishIn         int64 `json:"publish_in" may:"absent"`
		PublishOut        int64 `json:"publish_out" may:"absent"`
	}
	tListener struct {
		Node     string `json:"node"`
		Protocol string `json:"protocol"`
		Address  string `json:"ip_address"`
		Port     int    `json:"port"`
	}
	tContext struct {
		Node        string `json:"node"`
		Description string `json:"description"`
		Path        string `json:"path"`
		Port        string `json:"port"`
	}
	tType struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Enabled     bool   `json:"enabled"`
	}
	tOverview struct {
		ManagementVersion string            `json:"management_version"`
		RabbitMQVersion   string            `json:"rabbitmq_version"`
		ProductName       string            `json:"product_name"`
		ErlangVersion     string            `json:"erlang_version"`
		FullErlangVersion string            `json:"erlang_full_version"`
		ClusterName       string            `json:"cluster_name"`
		Node              string            `json:"node"`
		RatesMode         string            `json:"rates_mode"`
		StatsEvents       int               `json:"statistics_db_event_queue"`
		ExchangeTypes     []tType           `json:"exchange_types"`
		Listeners         []tListener       `json:"listeners"`
		Contexts          []tContext        `json:"contexts"`
		MessageStats      tOverviewMessages `json:"message_stats"`
		Churn             map[string]any    `json:"churn_rates"`
		ObjectTotals      tObjectTotals     `json:"object_totals"`
		QueueTotals       tQueueTotals      `json:"queue_totals"`
		Retention         map[string][]int  `json:"sample_retention_policies"`
		DisableStats      bool              `json:"disable_stats"`
		EnableTotals      bool              `json:"enable_queue_totals"`
		DefaultQueueType  string            `json:"default_queue_type"`
		ClusterTags       map[string]any    `json:"cluster_tags"`
		NodeTags          map[string]any    `json:"node_tags"`
	}
	tOverviewMessages struct { // Telegraf wants all of them
		Ack        int64 `json:"ack"`
		AckDetails tRate `json:"ack_details"`
		Deliver    int64 `json:"deliver"`
		DeliverGet int64 `json:"deliver_get"`
		Publish    int64 `json:"publish"`
		Details    tRate `json:"publish_details"`
		Redeliver  int64 `json:"redeliver"`
		Confirm    int64 `json:"confirm"`
		Unroutable int64 `json:"return_unroutable"`
	}
	tObjectTotals struct {
		Channels    int `json:"channels"`
		Connections int `json:"connections"`
		Consumers   int `json:"consumers"`
		Exchanges   int `json:"exchanges"`
		Queues      int `json:"queues"`
	}
	tQueueTotals struct {
		Messages        int64 `json:"messages"`
		MessagesDetails tRate `json:"messages_details"`
		Ready           int64 `json:"messages_ready"`
		Unacked         int64 `json:"messages_unacknowledged"`
	}
	tNode struct {
		Name          string     `json:"name"`
		Type          string     `json:"type"`
		Running       bool       `json:"running"`
		PID           string     `json:"os_pid"`
		FDUsed        int64      `json:"fd_used"`
		FDTotal       int64      `json:"fd_total"`
		FDDetails     tRate      `json:"fd_used_details"`
		SocketsUsed   int64      `json:"sockets_used"`
		SocketsTotal  int64      `json:"sockets_total"`
		ProcUsed      int64      `json:"proc_used"`
		ProcTotal     int64      `json:"proc_total"`
		MemUsed       int64      `json:"mem_used"`
		MemLimit      int64      `json:"mem_limit"`
		MemAlarm      bool       `json:"mem_alarm"`
		DiskFree      int64      `json:"disk_free"`
		DiskLimit     int64      `json:"disk_free_limit"`
		DiskAlarm     bool       `json:"disk_free_alarm"`
		RunQueue      int64      `json:"run_queue"`
		Processors    int64      `json:"processors"`
		Uptime        int64      `json:"uptime"`
		Partitions    []string   `json:"partitions"`
		RatesMode     string     `json:"rates_mode"`
		NetTick       int64      `json:"net_ticktime"`
		Strategy      string     `json:"mem_calculation_strategy"`
		ReadTime      float64    `json:"io_read_avg_time"`
		WriteTime     float64    `json:"io_write_avg_time"`
		SyncTime      float64    `json:"io_sync_avg_time"`
		GC            int64      `json:"gc_num"`
		GCDetails     tRate      `json:"gc_num_details"`
		Switches      int64      `json:"context_switches"`
		DiskTx        int64      `json:"mnesia_disk_tx_count"`
		Created       int64      `json:"connection_created"`
		ChannelsMade  int64      `json:"channel_created"`
		QueuesMade    int64      `json:"queue_created"`
		DBDir         string     `json:"db_dir"`
		LogFiles      []string   `json:"log_files"`
		ConfigFiles   []string   `json:"config_files"`
		Plugins       []string   `json:"enabled_plugins"`
		ExchangeTypes []tType    `json:"exchange_types"`
		Mechanisms    []tType    `json:"auth_mechanisms"`
		Contexts      []tContext `json:"contexts"`
		Drained       bool       `json:"being_drained"`
	}
	tMemory struct {
		Memory struct {
			Readers  int64            `json:"connection_readers"`
			Writers  int64            `json:"connection_writers"`
			Channels int64            `json:"connection_channels"`
			Queues   int64            `json:"queue_procs"`
			Plugins  int64            `json:"plugins"`
			Binary   int64            `json:"binary"`
			Code     int64            `json:"code"`
			Atom     int64            `json:"atom"`
			Strategy string           `json:"strategy"`
			Total    map[string]int64 `json:"total"`
		} `json:"memory"`
	}
	tConnection struct {
		Name          string         `json:"name"`
		Node          string         `json:"node"`
		VHost         string         `json:"vhost"`
		User          string         `json:"user"`
		Protocol      string         `json:"protocol"`
		Type          string         `json:"type"`
		State         string         `json:"state"`
		Channels      int            `json:"channels"`
		ChannelMax    int            `json:"channel_max"`
		FrameMax      int            `json:"frame_max"`
		Timeout       int            `json:"timeout"`
		ConnectedAt   uint64         `json:"connected_at"`
		Mechanism     string         `json:"auth_mechanism"`
		Properties    map[string]any `json:"client_properties"`
		Host          string         `json:"host"`
		Port          int            `json:"port"`
		PeerHost      string         `json:"peer_host"`
		PeerPort      int            `json:"peer_port"`
		TLS           bool           `json:"ssl"`
		TLSProtocol   string         `json:"ssl_protocol" may:"null"`
		Subject       string         `json:"peer_cert_subject" may:"null"`
		Received      uint64         `json:"recv_oct"`
		ReceivedRate  tRate          `json:"recv_oct_details"`
		ReceivedCount uint64         `json:"recv_cnt"`
		Sent          uint64         `json:"send_oct"`
		SendPending   uint64         `json:"send_pend"`
	}
	tConnectionDetails struct {
		Name     string `json:"name"`
		PeerHost string `json:"peer_host"`
		PeerPort int    `json:"peer_port"`
	}
	tChannel struct {
		Name        string             `json:"name"`
		Number      int                `json:"number"`
		Node        string             `json:"node"`
		VHost       string             `json:"vhost"`
		User        string             `json:"user"`
		State       string             `json:"state"`
		Consumers   int                `json:"consumer_count"`
		Prefetch    int                `json:"prefetch_count"`
		Unacked     int                `json:"messages_unacknowledged"`
		Unconfirmed int                `json:"messages_unconfirmed"`
		Uncommitted int                `json:"messages_uncommitted"`
		AcksPending int                `json:"acks_uncommitted"`
		Confirm     bool               `json:"confirm"`
		Tx          bool               `json:"transactional"`
		Connection  tConnectionDetails `json:"connection_details"`
		Stats       tMessageStats      `json:"message_stats" may:"absent"`
	}
	tConsumer struct {
		Tag       string         `json:"consumer_tag"`
		Ack       bool           `json:"ack_required"`
		Exclusive bool           `json:"exclusive"`
		Prefetch  int            `json:"prefetch_count"`
		Arguments map[string]any `json:"arguments"`
		Active    bool           `json:"active"`
		Status    string         `json:"activity_status"`
		Queue     struct {
			Name  string `json:"name"`
			VHost string `json:"vhost"`
		} `json:"queue"`
		Channel struct {
			Connection string `json:"connection_name"`
			Name       string `json:"name"`
			Number     int    `json:"number"`
			Node       string `json:"node"`
			PeerHost   string `json:"peer_host"`
			PeerPort   int    `json:"peer_port"`
			User       string `json:"user"`
		} `json:"channel_details"`
	}
	tExchange struct {
		Name       string         `json:"name"`
		VHost      string         `json:"vhost"`
		Type       string         `json:"type"`
		Durable    bool           `json:"durable"`
		AutoDelete bool           `json:"auto_delete"`
		Internal   bool           `json:"internal"`
		Arguments  map[string]any `json:"arguments"`
		Stats      tMessageStats  `json:"message_stats" may:"absent"`
	}
	tQueue struct {
		Name         string         `json:"name"`
		VHost        string         `json:"vhost"`
		Type         string         `json:"type"`
		Node         string         `json:"node"`
		State        string         `json:"state"`
		Durable      bool           `json:"durable"`
		AutoDelete   bool           `json:"auto_delete"`
		Exclusive    bool           `json:"exclusive"`
		Arguments    map[string]any `json:"arguments"`
		Policy       string         `json:"policy" may:"absent null"`
		Effective    map[string]any `json:"effective_policy_definition"`
		Messages     int            `json:"messages"`
		MessagesRate tRate          `json:"messages_details"`
		Ready        int            `json:"messages_ready"`
		ReadyRate    tRate          `json:"messages_ready_details"`
		Unacked      int            `json:"messages_unacknowledged"`
		UnackedRate  tRate          `json:"messages_unacknowledged_details"`
		Consumers    int            `json:"consumers"`
		Utilisation  float64        `json:"consumer_utilisation" may:"absent"`
		Capacity     float64        `json:"consumer_capacity" may:"absent"`
		Memory       int64          `json:"memory"`
		Bytes        int64          `json:"message_bytes"`
		Persistent   int64          `json:"message_bytes_persistent"`
		RAM          int64          `json:"message_bytes_ram"`
		ExclusiveTag string         `json:"exclusive_consumer_tag" may:"absent null"`
		ActiveTag    string         `json:"single_active_consumer_tag" may:"absent null"`
		IdleSince    string         `json:"idle_since" may:"absent"`
		Leader       string         `json:"leader" may:"absent"`
		Members      []string       `json:"members" may:"absent"`
		Online       []string       `json:"online" may:"absent"`
		Limit        int            `json:"delivery_limit" may:"absent"`
		Stats        tMessageStats  `json:"message_stats" may:"absent"`
	}
	tQueuePage struct {
		Filtered int      `json:"filtered_count"`
		Count    int      `json:"item_count"`
		Page     int      `json:"page"`
		Pages    int      `json:"page_count"`
		Size     int      `json:"page_size"`
		Total    int      `json:"total_count"`
		Items    []tQueue `json:"items"`
	}
	tBinding struct {
		Source      string         `json:"source"`
		VHost       string         `json:"vhost"`
		Destination string         `json:"destination"`
		Type        string         `json:"destination_type"`
		Key         string         `json:"routing_key"`
		Arguments   map[string]any `json:"arguments"`
		Properties  string         `json:"properties_key"`
	}
	tVHost struct {
		Name         string            `json:"name"`
		Description  string            `json:"description"`
		Tags         []string          `json:"tags"`
		QueueType    string            `json:"default_queue_type"`
		Tracing      bool              `json:"tracing"`
		State        map[string]string `json:"cluster_state"`
		Messages     int               `json:"messages"`
		MessagesRate tRate             `json:"messages_details"`
	}
	tUser struct {
		Name   string         `json:"name"`
		Hash   string         `json:"password_hash"`
		Method string         `json:"hashing_algorithm"`
		Tags   []string       `json:"tags"`
		Limits map[string]int `json:"limits"`
	}
	tWhoAmI struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	tPermission struct {
		User      string `json:"user"`
		VHost     string `json:"vhost"`
		Configure string `json:"configure"`
		Write     string `json:"write"`
		Read      string `json:"read"`
	}
	tPolicy struct {
		VHost      string         `json:"vhost"`
		Name       string         `json:"name"`
		Pattern    string         `json:"pattern"`
		ApplyTo    string         `json:"apply-to"`
		Priority   int            `json:"priority"`
		Definition map[string]any `json:"definition"`
	}
	tLimits struct {
		VHost string         `json:"vhost"`
		Value map[string]int `json:"value"`
	}
	tFlag struct {
		Name      string `json:"name"`
		State     string `json:"state"`
		Stability string `json:"stability"`
		Provider  string `json:"provided_by"`
		URL       string `json:"doc_url"`
	}
	tGlobal struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	}
	tMessage struct {
		Bytes       int    `json:"payload_bytes"`
		Redelivered bool   `json:"redelivered"`
		Exchange    string `json:"exchange"`
		Key         string `json:"routing_key"`
		Count       int    `json:"message_count"`
		Properties  any    `json:"properties"` // RabbitMQ: [] if there are none
		Payload     string `json:"payload"`
		Encoding    string `json:"payload_encoding"`
	}
)

// mismatches says where JSON differs from a type, strictly: an integer is no float
// with a fraction, a number no string, and null nothing at all.
func mismatches(path string, v any, t reflect.Type, may string) (list []string) {
	wrong := func(want string) []string { return []string{fmt.Sprintf("%s is %T %v, want %s", path, v, v, want)} }
	if v == nil && strings.Contains(may, "null") {
		return nil
	}
	switch t.Kind() {
	case reflect.Interface:
	case reflect.String:
		if _, isText := v.(string); !isText {
			return wrong("a string")
		}
	case reflect.Bool:
		if _, isBool := v.(bool); !isBool {
			return wrong("true or false")
		}
	case reflect.Float64:
		if _, isNumber := v.(json.Number); !isNumber {
			return wrong("a number")
		}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		if n, isNumber := v.(json.Number); !isNumber || strings.ContainsAny(n.String(), ".eE") {
			return wrong("an integer")
		}
	case reflect.Slice:
		l, isList := v.([]any)
		if !isList {
			return wrong("a list")
		}
		for i := range l {
			list = append(list, mismatches(fmt.Sprintf("%s[%d]", path, i), l[i], t.Elem(), "")...)
		}
	case reflect.Map:
		o, isObject := v.(map[string]any)
		if !isObject {
			return wrong("an object")
		}
		for name := range o {
			list = append(list, mismatches(path+"."+name, o[name], t.Elem(), "")...)
		}
	case reflect.Struct:
		return memberMismatches(path, v, t)
	default:
		panic("a type that no client declares")
	}
	return list
}

func memberMismatches(path string, v any, t reflect.Type) (list []string) {
	o, isObject := v.(map[string]any)
	if !isObject {
		return []string{fmt.Sprintf("%s is %T, want an object", path, v)}
	}
	for f := range t.Fields() {
		name, may := f.Tag.Get("json"), f.Tag.Get("may")
		member, there := o[name]
		switch {
		case there:
			list = append(list, mismatches(path+"."+name, member, f.Type, may)...)
		case !strings.Contains(may, "absent"):
			list = append(list, path+"."+name+" is missing")
		}
	}
	return list
}

// What we answer is what clients declare: rabbit-hole's structs, what KEDA, Telegraf and
// Datadog read. See mismatches.
func TestAnswersFitTheTypesOfClients(t *testing.T) {
	a := aBusyAPI(t)
	a.do("PUT", "/queues/%2F/quorum", `{"durable":true,"arguments":{"x-queue-type":"quorum"}}`, 201)
	a.do("PUT", "/queues/%2F/stream", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`, 201)
	a.do("POST", "/bindings/%2F/e/amq.topic/q/q", `{"routing_key":"a.#","arguments":{"k":1}}`, 201)
	a.do("PUT", "/policies/%2F/p", `{"pattern":"^q$","definition":{"max-length":10}}`, 201)
	a.do("PUT", "/vhost-limits/%2F/max-queues", `{"value":50}`, 204)
	a.do("PUT", "/global-parameters/g", `{"value":{"a":1}}`, 201)
	queues := []string{"q", "quorum", "stream", "other"}
	for path, types := range map[string]any{
		"/overview": tOverview{}, "/nodes": []tNode{}, "/nodes/rabbit@test": tNode{}, "/nodes/rabbit@test/memory": tMemory{},
		"/connections": []tConnection{}, "/connections/10.0.0.7%3A4711%20-%3E%2010.0.0.1%3A5672": tConnection{}, "/vhosts/%2F/connections": []tConnection{},
		"/channels": []tChannel{}, "/channels/10.0.0.7%3A4711%20-%3E%2010.0.0.1%3A5672%20(1)": tChannel{}, "/consumers": []tConsumer{}, "/consumers/%2F": []tConsumer{},
		"/exchanges": []tExchange{}, "/exchanges/%2F/amq.topic": tExchange{}, "/bindings": []tBinding{}, "/bindings/%2F": []tBinding{}, "/queues/%2F/q/bindings": []tBinding{},
		"/queues": []tQueue{}, "/queues/detailed": []tQueue{}, "/queues/%2F?page=1&page_size=2": tQueuePage{},
		"/queues/%2F?page=1&use_regex=true&pagination=false&name=%5Eq&page_size=100": tQueuePage{},
		"/vhosts": []tVHost{}, "/vhosts/%2F": tVHost{}, "/users": []tUser{}, "/users/guest": tUser{}, "/whoami": tWhoAmI{},
		"/permissions": []tPermission{}, "/permissions/%2F/guest": tPermission{}, "/policies": []tPolicy{}, "/policies/%2F/p": tPolicy{},
		"/vhost-limits": []tLimits{}, "/feature-flags": []tFlag{}, "/global-parameters": []tGlobal{}, "/global-parameters/g": tGlobal{},
	} {
		a.fits("GET", path, "", types)
	}
	for _, q := range queues {
		a.fits("GET", "/queues/%2F/"+q, "", tQueue{})
	}
	a.fits("POST", "/queues/%2F/q/get", `{"count":2,"ackmode":"ack_requeue_true","encoding":"auto"}`, []tMessage{})
}

// fits wants the answer to fit a type, and a list to have something in it.
func (a *api) fits(method, path, body string, types any) {
	a.t.Helper()
	w := a.request(method, path, body, nil)
	dec := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || w.Code != 200 {
		a.t.Errorf("%s %s = %d %s (%v)", method, path, w.Code, w.Body, err)
		return
	}
	if l, isList := v.([]any); isList && len(l) == 0 {
		a.t.Errorf("%s %s is an empty list, which shows nothing", method, path)
	}
	for _, m := range mismatches("", v, reflect.TypeOf(types), "") {
		a.t.Errorf("%s %s: %s", method, path, m)
	}
}

func TestMismatchesAreFound(t *testing.T) {
	type s struct {
		A int     `json:"a"`
		B string  `json:"b" may:"null"`
		C float64 `json:"c" may:"absent"`
	}
	for in, want := range map[string][]string{
		`{"a":1,"b":"x","c":1.5}`: nil,
		`{"a":1,"b":null}`:        nil,
		`{"a":1.0,"b":"x"}`:       {".a is json.Number 1.0, want an integer"},
		`{"a":"1","b":"x"}`:       {".a is string 1, want an integer"},
		`{"b":1}`:                 {".a is missing", ".b is json.Number 1, want a string"},
		`{"a":null,"b":"x"}`:      {".a is <nil> <nil>, want an integer"},
	} {
		dec := json.NewDecoder(strings.NewReader(in))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if got := mismatches("", v, reflect.TypeFor[s](), ""); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
