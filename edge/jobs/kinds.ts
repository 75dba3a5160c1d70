import type { z } from 'zod';
import { PROJECT_LIST_ROWS_MAX, UPLOAD_LIST_ROWS_MAX } from '../../shared/jobs/limits.ts';
import { isUploadId } from '../../shared/jobs/paths.ts';
import { type ProjectRow, projectList, projectRow } from '../../shared/jobs/project-contract.ts';
import { isProjectId } from '../../shared/jobs/project-id.ts';
import { isOver } from '../../shared/jobs/state.ts';
import { type UploadRow, uploadList, uploadRow } from '../../shared/jobs/upload-contract.ts';
import type { Reason } from '../../shared/refusal.ts';
import type { Scope } from '../../shared/tenant/claims.ts';
import { renderProject } from './render-project.ts';
import { renderUpload } from './render-upload.ts';

/** A job as the functions describe it. */
export interface JobRow {
  readonly id: string;
  /** Rises with each change. */
  readonly seq: number;
}

export interface JobPage<Row> {
  readonly rows: readonly Row[];
  /** `after` of the next page. */
  readonly next?: string | undefined;
}

/** A kind of job: an upload or a text project. */
export interface JobKind<Row extends JobRow> {
  /** Name of one in actions of the audit record. */
  readonly name: string;
  readonly scope: Scope;
  /** Path of the jobs below `/api` of the functions. */
  readonly root: string;
  readonly isId: (id: string) => boolean;
  /** Refusal of an id that no zone knows. */
  readonly unknown: Reason;
  readonly row: z.ZodType<Row>;
  readonly page: z.ZodType<JobPage<Row>>;
  /** Most rows of a page. */
  readonly pageRows: number;
  readonly isEnded: (row: Row) => boolean;
  /** Returns the job as its owner sees it. */
  readonly show: (row: Row) => object;
}

export const UPLOADS: JobKind<UploadRow> = {
  name: 'upload',
  scope: 'uploads',
  root: '/uploads',
  isId: isUploadId,
  unknown: 'upload_unknown',
  row: uploadRow,
  page: uploadList.transform(({ uploads, next }) => ({ rows: uploads, next })),
  pageRows: UPLOAD_LIST_ROWS_MAX,
  isEnded: ({ status }) => isOver(status),
  show: renderUpload,
};

export const PROJECTS: JobKind<ProjectRow> = {
  name: 'project',
  scope: 'projects',
  root: '/projects',
  isId: isProjectId,
  unknown: 'project_unknown',
  row: projectRow,
  page: projectList.transform(({ projects, next }) => ({ rows: projects, next })),
  pageRows: PROJECT_LIST_ROWS_MAX,
  isEnded: ({ status }) => status !== 'working',
  show: renderProject,
};
