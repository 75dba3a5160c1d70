import path from 'node:path';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { installSchema } from './install-schema.ts';

/** Where Triton is kept between runs. */
export const folder = process.env.AURICLE_TRITON ?? path.resolve(import.meta.dirname, '../../.auricle/triton');

/** Triton's schema of configurations, kept beside it. */
export const schemaFolder = `${folder}-schema`;

/** Before all files, in the process that may reach a package index. */
export async function setup(): Promise<void> {
  await installTriton({ folder, say: (line) => console.log(`triton: ${line}`) });
  await installSchema(schemaFolder);
}
