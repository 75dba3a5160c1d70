// What 1,000 uploads of one piece cost beside the pool: how often each service was asked (counted by the benchmark), times
// a list price. Prices are in US dollars without free allowances or discounts, as their providers list them for western
// Europe in 2026; look them up before you rely on the sum.

export interface Price {
  /** As the benchmark counts it. */
  readonly of: string;
  readonly dollars: number;
  /** For so many. */
  readonly per: number;
  readonly what: string;
}

export const prices: readonly Price[] = [
  { of: 'blob write', dollars: 0.065, per: 10_000, what: 'Azure Blob Storage, hot, LRS: writes' },
  { of: 'blob read', dollars: 0.005, per: 10_000, what: 'Azure Blob Storage, hot, LRS: reads; deletes cost nothing' },
  { of: 'table', dollars: 0.00036, per: 10_000, what: 'Azure Table Storage, LRS: any operation' },
  { of: 'queue', dollars: 0.0004, per: 10_000, what: 'Azure Queue Storage, LRS: any operation' },
  { of: 'sqs', dollars: 0.4, per: 1_000_000, what: 'Amazon SQS, standard: any request' },
  { of: 'edge', dollars: 0.3, per: 1_000_000, what: 'Cloudflare Workers: requests' },
  { of: 'gate', dollars: 0.15, per: 1_000_000, what: 'Durable Objects: requests, two for each of the edge' },
  { of: 'functions', dollars: 0.4, per: 1_000_000, what: 'Azure Functions, Flex Consumption: executions' },
  { of: 'event', dollars: 0.6, per: 1_000_000, what: 'Azure Event Grid: one for each blob that is created' },
  { of: 'memory', dollars: 0.000_026, per: 1, what: 'Azure Functions, Flex Consumption: GB-s; 2 GB for 0.1 s each' },
];

/** Dollars for what was counted. */
export function costOf(counts: ReadonlyMap<string, number>): {
  readonly rows: [string, number][];
  readonly sum: number;
} {
  const rows = prices.map(({ of, dollars, per }): [string, number] => [of, ((counts.get(of) ?? 0) * dollars) / per]);
  return { rows, sum: rows.reduce((sum, [, cost]) => sum + cost, 0) };
}
