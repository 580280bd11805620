import { webkit } from '../../support/webkit.ts';
import { describeSmokeTests } from './smoke-tests.ts';

describeSmokeTests(webkit);
