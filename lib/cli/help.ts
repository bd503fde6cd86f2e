/** Text of `--help`. */
export const HELP = `Shows and ends the locks of nest-redis-lock. It never acquires one.

Usage: nest-redis-lock <command> [key] --redis URL [options]

Commands:
  who <key>      shows the holders of a key: owner, remaining lease, process, label
  list [prefix]  shows all held keys, or those that begin with the prefix
  queue <key>    shows the holders of a key and its queued owners, in order
  unlock <key>   ends all holds of a key, after a question

The store, one of these, or the environment variable REDIS_URL:
  --redis URL          redis://user:password@host:6379; several are a quorum
  --redis URL --cluster    some servers of a Redis Cluster
  --postgres URL       postgres://user:password@host:5432/database
  --mysql URL          mysql://user:password@host:3306/database
  --zookeeper HOSTS    zk1:2181,zk2:2181; --base-path PATH is /locks by default

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
