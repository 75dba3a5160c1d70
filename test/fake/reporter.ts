// A double of the reporter: stores or refuses reports.
import type { Reporter } from '../../functions/audit/report/report.ts';
import type { EventDraft } from '../../shared/audit/event.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok } from '../../shared/result.ts';

export interface FakeReporter extends Reporter {
  readonly reports: { readonly zone: string; readonly draft: EventDraft; readonly id?: string }[];
  /** Says no to what comes, as when storage is away. */
  refuses: boolean;
}

export function createFakeReporter(): FakeReporter {
  const double: FakeReporter = {
    reports: [],
    refuses: false,
    async report(zone, draft, given) {
      if (double.refuses) return no(refuse('audit_unavailable'));
      double.reports.push({ zone, draft, ...(given !== undefined && { id: given }) });
      const pseq = double.reports.length;
      const id = given ?? `00000000-0000-7000-8000-${String(pseq).padStart(12, '0')}`;
      return ok({ id, producer: `functions/${zone}`, epoch: '00000000-0000-4000-8000-000000000000', pseq });
    },
    async close() {},
  };
  return double;
}
