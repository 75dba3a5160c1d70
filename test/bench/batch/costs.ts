// Cost of 1,000 uploads of one piece in US dollars: calls of each service (counted by the benchmark) at list
// prices, without free allowances or discounts. Each price names the page it was read on and its date; one
// without a page says so and has to be looked up before the sum is relied on.

export interface Price {
  /** Name of the count. */
  readonly of: string;
  readonly dollars: number;
  /** Units that the price covers. */
  readonly per: number;
  readonly what: string;
  /** Page and date, or that there is none. */
  readonly source: string;
}

const UNREAD = 'no page read; the list price as remembered';

export const prices: readonly Price[] = [
  {
    of: 'blob write',
    dollars: 0.055,
    per: 10_000,
    what: 'Azure Blob Storage, hot, LRS, US East: writes',
    source:
      "github.com/api-evangelist/microsoft-azure-blob-storage, plans, 2026-05-05, after the provider's price page",
  },
  {
    of: 'blob read',
    dollars: 0.0044,
    per: 10_000,
    what: 'Azure Blob Storage, hot, LRS, US East: reads; deletes cost nothing',
    source: 'the same; deletes: learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories',
  },
  {
    of: 'table',
    dollars: 0.00036,
    per: 10_000,
    what: 'Azure Table Storage, LRS: any operation, each row of a transaction',
    source: `${UNREAD}; that each row counts: docs.particular.net/persistence/azure-table/capacity-planning`,
  },
  { of: 'queue', dollars: 0.0004, per: 10_000, what: 'Azure Queue Storage, LRS: any operation', source: UNREAD },
  {
    of: 'sqs',
    dollars: 0.4,
    per: 1_000_000,
    what: 'Amazon SQS, standard: any request of up to 64 KB',
    source: 'cloudburn.io/blog/amazon-sqs-pricing, 2026-03-14',
  },
  {
    of: 'edge',
    dollars: 0.3,
    per: 1_000_000,
    what: 'Cloudflare Workers: requests',
    source: 'developers.cloudflare.com/workflows/reference/pricing (as Workers Standard), read 2026-11-22',
  },
  {
    of: 'edge CPU',
    dollars: 0.02,
    per: 1_000_000,
    what: 'Cloudflare Workers: milliseconds of processor time, 2 for each request',
    source: 'the same',
  },
  {
    of: 'gate',
    dollars: 0.15,
    per: 1_000_000,
    what: 'Durable Objects: requests, two for each of the edge',
    source: 'developers.cloudflare.com/durable-objects/platform/pricing, read 2026-11-22',
  },
  {
    of: 'gate memory',
    dollars: 12.5,
    per: 1_000_000,
    what: 'Durable Objects: GB-s, 128 MB for 10 ms of each request',
    source: 'the same',
  },
  {
    of: 'functions',
    dollars: 0.4,
    per: 1_000_000,
    what: 'Azure Functions, Flex Consumption: executions',
    source: UNREAD,
  },
  {
    of: 'memory',
    dollars: 0.000_026,
    per: 1,
    what: 'Azure Functions, Flex Consumption: GB-s; 2 GB for 0.1 s each',
    source: 'modal.com/blog/azure-function-pricing-guide, 2025-05-22',
  },
  {
    of: 'event',
    dollars: 0.6,
    per: 1_000_000,
    what: 'Azure Event Grid: one operation when a blob is made and one for its delivery',
    source: `${UNREAD}; that both count: learn.microsoft.com/answers/questions/5830137, read 2026-11-22`,
  },
];

/** Machines of a pool, by the hour. */
export const machines: readonly (Price & { readonly accelerator: string })[] = [
  {
    of: 'T4',
    accelerator: 'T4',
    dollars: 0.526,
    per: 1,
    what: 'Amazon EC2 g4dn.xlarge, Linux, on demand, us-east-1: an hour',
    source: UNREAD,
  },
  {
    of: 'A10G',
    accelerator: 'A10G',
    dollars: 1.006,
    per: 1,
    what: 'Amazon EC2 g5.xlarge, Linux, on demand, us-east-1: an hour',
    source: 'main.d1m6t5n8e4tvia.amplifyapp.com/blog/amazon-ec2-on-demand-pricing-instance-families-2026, 2026-06',
  },
];

/** Dollars of a machine for 1,000 inferences when it works through so many seconds of sound in a second. */
export const machineCost = (hour: number, soundSeconds: number, timesFaster: number): number =>
  (1_000 * soundSeconds * hour) / (3_600 * timesFaster);

/** Dollars for what was counted. */
export function costOf(counts: ReadonlyMap<string, number>): {
  readonly rows: [string, number][];
  readonly sum: number;
} {
  const rows = prices.map(({ of, dollars, per }): [string, number] => [of, ((counts.get(of) ?? 0) * dollars) / per]);
  return { rows, sum: rows.reduce((sum, [, cost]) => sum + cost, 0) };
}
