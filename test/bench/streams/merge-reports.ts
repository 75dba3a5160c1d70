/** Members that the reports of both kinds of load client have. */
export interface CommonReport {
  readonly opened: number;
  readonly openMs: number;
  readonly sent: number;
  readonly ended: number;
  readonly lostSeconds: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
  readonly lateP99: number;
}

/** Returns the sum of a member over load clients. */
export const sumOf = <R>(reports: readonly R[], take: (report: R) => number): number =>
  reports.reduce((total, report) => total + take(report), 0);

/** Returns the largest value of a member: percentiles of several clients are those of the worst one. */
export const mostOf = <R>(reports: readonly R[], take: (report: R) => number): number => Math.max(...reports.map(take));

/** Puts the reports of load clients together. */
export function mergeReports(reports: readonly CommonReport[]): CommonReport {
  const failures: Record<string, number> = {};
  for (const report of reports) {
    for (const [why, count] of Object.entries(report.failures)) failures[why] = (failures[why] ?? 0) + count;
  }
  return {
    opened: sumOf(reports, ({ opened }) => opened),
    openMs: mostOf(reports, ({ openMs }) => openMs),
    sent: sumOf(reports, ({ sent }) => sent),
    ended: sumOf(reports, ({ ended }) => ended),
    lostSeconds: sumOf(reports, ({ lostSeconds }) => lostSeconds),
    failures,
    p50: mostOf(reports, ({ p50 }) => p50),
    p90: mostOf(reports, ({ p90 }) => p90),
    p99: mostOf(reports, ({ p99 }) => p99),
    max: mostOf(reports, ({ max }) => max),
    lateP99: mostOf(reports, ({ lateP99 }) => lateP99),
  };
}
