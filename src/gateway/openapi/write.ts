/** Writes the OpenAPI document to standard output. */

import { openApiDocument } from './document.ts';

console.log(JSON.stringify(openApiDocument(), null, 2));
