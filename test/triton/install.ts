import path from 'node:path';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { installSchema } from './install-schema.ts';

/** Folder of Triton, retained between runs. */
export const folder = process.env.AURICLE_TRITON ?? path.resolve(import.meta.dirname, '../../.auricle/triton');

/** Folder of Triton's configuration schema, beside it. */
export const schemaFolder = `${folder}-schema`;

/** Runs before all files, in the process that may reach a package index. */
export async function setup(): Promise<void> {
  await installTriton({ folder, log: (line) => console.log(`triton: ${line}`) });
  await installSchema(schemaFolder);
}
