/**
 * What to tell about a server that is something else than what `redis` says; undefined when it is not, and when it does not
 * tell.
 *
 * @param replication the reply of INFO replication.
 * @param cluster the reply of INFO cluster.
 */
export const partWarning = (
  replication: string,
  cluster: string,
  { isInCluster }: { readonly isInCluster: boolean },
): string | undefined => {
  if (!isInCluster && /^cluster_enabled:1/m.test(cluster)) {
    return (
      'Redis is one server of a Redis Cluster, and redis names it as if it were alone: locks whose slot another server has ' +
      'cannot be taken. Give redis: { cluster: [its address] }.'
    );
  }
  if (!/^role:slave/m.test(replication)) return undefined;
  const [host, port] = ['host', 'port'].map(
    (what) => new RegExp(`^master_${what}:(\\S+)`, 'm').exec(replication)?.[1],
  );
  return `Redis is a replica of ${host}:${port}: no lock can be taken there. Give the address of its master, or those of its sentinels.`;
};
