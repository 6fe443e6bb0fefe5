package management

// A feature is a feature flag of RabbitMQ. Tools look for some of them before
// they use what the flag stands for.
type feature struct{ name, stability, desc string }

// featureList are RabbitMQ 4.0's flags. All of them are on: what a flag stands
// for is either there or has no meaning here.
var featureList = []feature{
	{"classic_mirrored_queue_version", "required", "Versions of classic queues"},
	{"classic_queue_type_delivery_support", "required", "Classic queues deliver like the other types"},
	{"detailed_queues_endpoint", "stable", "The path /api/queues/detailed"},
	{"direct_exchange_routing_v2", "required", "Fast routing in direct exchanges"},
	{"drop_unroutable_metric", "required", "Counting of dropped unroutable messages"},
	{"empty_basic_get_metric", "required", "Counting of basic.get on empty queues"},
	{"feature_flags_v2", "required", "Second version of feature flags"},
	{"implicit_default_bindings", "required", "Bindings of the default exchange need no storage"},
	{"listener_records_in_ets", "required", "Listeners are kept in memory"},
	{"maintenance_mode_status", "required", "Maintenance mode"},
	{"message_containers", "required", "Messages of several protocols"},
	{"message_containers_deaths_v2", "stable", "Dead-letter history is exact"},
	{"quorum_queue", "required", "Queues of type quorum"},
	{"quorum_queue_non_voters", "stable", "Members of quorum queues without a vote"},
	{"rabbitmq_4.0.0", "stable", "Behaviour of RabbitMQ 4.0"},
	{"restart_streams", "required", "Streams can be restarted"},
	{"stream_filtering", "required", "Filters of streams"},
	{"stream_queue", "required", "Queues of type stream"},
	{"stream_sac_coordinator_unblock_group", "required", "Unblocking of groups of stream consumers"},
	{"stream_single_active_consumer", "required", "Single active consumers of streams"},
	{"stream_update_config_command", "stable", "Streams can be reconfigured"},
	{"tracking_records_in_ets", "required", "Connections are tracked in memory"},
	{"user_limits", "required", "Limits of users"},
	{"virtual_host_metadata", "required", "Descriptions and tags of vhosts"},
}

func featureFlags(*request) (reply, error) {
	list := make([]object, len(featureList))
	for i, f := range featureList {
		list[i] = object{{"name", f.name}, {"state", "enabled"}, {"stability", f.stability}, {"desc", f.desc},
			{"doc_url", ""}, {"provided_by", "rabbit"}}
	}
	return plain(list)
}

func enableFeatureFlag(r *request) (reply, error) {
	for _, f := range featureList {
		if f.name == r.arg("flag") {
			return noContent, nil
		}
	}
	return reply{}, badRequest("unsupported")
}

// deprecatedFeatures are what RabbitMQ advises against. It all works here.
func deprecatedFeatures(*request) (reply, error) {
	var list []object
	for _, f := range []struct{ name, desc string }{
		{"amqp_address_v1", "AMQP 1.0 addresses of version 1"},
		{"global_qos", "Prefetch shared by the consumers of a channel"},
		{"management_metrics_collection", "Statistics in the management API"},
		{"queue_master_locator", "The argument that chooses the node of a queue"},
		{"ram_node_type", "Nodes that keep no state on disk"},
		{"transient_nonexcl_queues", "Queues that are neither durable nor exclusive"},
	} {
		list = append(list, object{{"name", f.name}, {"desc", f.desc}, {"deprecation_phase", "permitted_by_default"},
			{"doc_url", ""}, {"provided_by", "rabbit"}})
	}
	return plain(list)
}
