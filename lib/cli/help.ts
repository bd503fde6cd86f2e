/** Text of `--help`. */
export const HELP = `Shows and ends the locks of nest-redis-lock. It never acquires one.

Usage: nest-redis-lock <command> [key] [store] [options]

Commands:
  who <key>      shows the holders of a key: owner, remaining lease, process, label
  list [prefix]  shows all held keys, or those that begin with the prefix
  queue <key>    shows the holders of a key and its queued owners, in order
  unlock <key>   ends all holds of a key, after a question

The store, one of these:
  --config FILE        options of the store in JSON, also passwords, certificates and Sentinel
  --redis URL          redis://host:6379; several are a quorum
  --redis URL --cluster    some servers of a Redis Cluster
  --postgres URL       postgres://user@host:5432/database
  --mysql URL          mysql://user@host:3306/database
  --zookeeper HOSTS    zk1:2181,zk2:2181; --base-path PATH is /locks by default
Without one: the environment variable NEST_REDIS_LOCK_CONFIG (JSON as in the file),
or REDIS_URL (one Redis server). An address with a password belongs there or into the file.

Options:
  --key-prefix TEXT    keyPrefix of the apps; lock: by default
  --json               writes JSON; a remaining lease without an end is null
  -y, --yes            unlocks without a question
  -h, --help           shows this text
  --version            shows the version

Exit codes:
  0  found, or done
  1  the key is free, or there was nothing to do
  2  wrong arguments, or a store that is not set up for locks
  3  the store failed, or the outcome is unknown
`;
