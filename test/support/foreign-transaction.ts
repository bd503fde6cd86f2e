/** A transaction of another user in the database of the locks. It is rolled back in the end, unless it has committed. */
export interface ForeignTransaction extends AsyncDisposable {
  /** Runs further statements. */
  query(statements: string): Promise<unknown>;
}
