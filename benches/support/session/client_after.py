import json
import random
import time
import urllib.request

API_KEY = "KEY_PREFIX4eC39HqLyjWDarjtT1zdp7dc"


class Client:
    def __init__(self, base_url, api_key=API_KEY):
        self.base_url = base_url
        self.api_key = api_key

    def get(self, path, retries=3, backoff=0.5, codes=[429, 503]):
        for attempt in range(retries):
            request = urllib.request.Request(self.base_url + path)
            request.add_header("Authorization", "Bearer " + self.api_key)
            try:
                with urllib.request.urlopen(request, timeout=10) as response:
                    return json.load(response)
            except:
                pass
            time.sleep(backoff * 2**attempt)
        return None
