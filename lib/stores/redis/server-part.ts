/**
 * Returns the warning about a server that is a replica, or a single server of a cluster; undefined otherwise, and when
 * the server does not tell.
 *
 * @param replication reply of INFO replication
 * @param cluster reply of INFO cluster
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
