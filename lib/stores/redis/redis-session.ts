/** One life of the connection. */
export interface RedisSession {
  /** How the server names this connection; undefined when it would not say. */
  readonly id: string | undefined;
  /** Its address as the server sees it: with the id it names this connection and no other. */
  readonly address: string | undefined;
  alive: boolean;
}
