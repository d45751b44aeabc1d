"""The official openai Python client against the server."""
import sys

import harness
from harness import Server

try:
    import openai
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


class OpenAiClientTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.model)
        cls.enterClassContext(cls.server)
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["tiny"])

    def test_chat_whole_and_streamed(self):
        arguments = {"model": "tiny", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}], "max_tokens": 16, "temperature": 0}
        whole = self.client.chat.completions.create(**arguments)
        self.assertIn(whole.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        chunks = list(self.client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_completions_with_logprobs(self):
        reply = self.client.completions.create(model="tiny", prompt="abc", max_tokens=5, temperature=0, logprobs=2, echo=True)
        self.assertTrue(reply.choices[0].text.startswith("abc"))
        self.assertEqual(len(reply.choices[0].logprobs.tokens), len(reply.choices[0].logprobs.token_logprobs))

    def test_errors_become_the_clients_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="tiny", prompt="abc", temperature=9)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model="none", prompt="abc")
        self.assertEqual(caught.exception.code, "model_not_found")


if __name__ == "__main__":
    harness.main()
